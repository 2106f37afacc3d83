package nacostest

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/freeport"
)

// A Cluster consists of three nodes of V3. They store configs in a MariaDB or
// MySQL, and persistent instances themselves.
type Cluster struct {
	Nodes [3]*Server
}

// membership contains a node's settings for its cluster.
type membership struct {
	ports []int
	db    *mysql.Config
}

// StartCluster starts a cluster on an empty database, in which it creates
// Nacos' tables. The cluster ends with the test.
func StartCluster(tb testing.TB, dsn string) *Cluster {
	tb.Helper()
	db, err := mysql.ParseDSN(dsn)
	if err != nil {
		tb.Fatal(err)
	}
	var c Cluster
	for i := range c.Nodes {
		n, err := prepareServer(tb.Context(), V3, Options{})
		if err != nil {
			tb.Fatal(err)
		}
		c.Nodes[i] = n
		tb.Cleanup(func() { n.finish(tb) })
	}
	if err := createSchema(tb.Context(), db, c.Nodes[0].jars); err != nil {
		tb.Fatal(err)
	}
	if err := c.boot(tb.Context(), db); err != nil {
		tb.Fatal(err)
	}
	return &c
}

// boot starts the nodes together, because no node becomes ready before the others have started.
func (c *Cluster) boot(ctx context.Context, db *mysql.Config) error {
	unlock, err := lockFile(ctx, "boot.lock")
	if err != nil {
		return err
	}
	defer unlock()
	var offsets []int
	for i := range c.Nodes {
		for _, d := range portOffsets {
			offsets = append(offsets, d+10*i)
		}
	}
	port, err := freeport.Find(offsets...)
	if err != nil {
		return err
	}
	m := &membership{db: db}
	for i, n := range c.Nodes {
		n.port, n.peer = port+10*i, m
		m.ports = append(m.ports, n.port)
	}
	for _, n := range c.Nodes {
		if err := n.start(); err != nil {
			return err
		}
	}
	for _, n := range c.Nodes {
		if err := n.awaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (m *membership) members() []byte {
	var b bytes.Buffer
	for _, p := range m.ports {
		fmt.Fprintln(&b, loopback(p))
	}
	return b.Bytes()
}

func (m *membership) properties() []string {
	return []string{
		"nacos.config.namespace.compatible.mode=false",
		"spring.sql.init.platform=mysql",
		"db.num=1",
		"db.url.0=jdbc:mysql://" + m.db.Addr + "/" + m.db.DBName + "?characterEncoding=utf8&connectTimeout=1000" +
			"&socketTimeout=3000&autoReconnect=true&useSSL=false&allowPublicKeyRetrieval=true&serverTimezone=UTC",
		"db.user.0=" + m.db.User,
		"db.password.0=" + m.db.Passwd,
	}
}

// createSchema creates Nacos' tables with the SQL in the server's jars.
func createSchema(ctx context.Context, conf *mysql.Config, jars string) error {
	found, err := filepath.Glob(filepath.Join(jars, "lib", "nacos-config-[0-9]*.jar"))
	if err != nil || len(found) != 1 {
		return fmt.Errorf("nacostest: the jar with the schema: %v, %w", found, err)
	}
	jar, err := zip.OpenReader(found[0])
	if err != nil {
		return err
	}
	defer jar.Close()
	f, err := jar.Open("META-INF/mysql-schema.sql")
	if err != nil {
		return err
	}
	defer f.Close()
	script, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	conf = conf.Clone()
	conf.MultiStatements = true
	connector, err := mysql.NewConnector(conf)
	if err != nil {
		return err
	}
	db := sql.OpenDB(connector)
	_, err = db.ExecContext(ctx, string(script))
	return cmp.Or(err, db.Close())
}

// Leader returns the index in Nodes of the node that leads the group of
// persistent instances. It waits until the members have elected the leader and
// exchanged the result, which they do every few seconds.
func (c *Cluster) Leader(tb testing.TB) int {
	tb.Helper()
	for until := time.Now().Add(2 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		leader, err := c.leader(tb.Context())
		if err == nil {
			return leader
		}
		if time.Now().After(until) {
			tb.Fatal(err)
		}
	}
}

func (c *Cluster) leader(ctx context.Context) (int, error) {
	for _, asked := range c.Nodes {
		if asked.proc == nil {
			continue
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+asked.Addr()+"/nacos/v3/admin/core/cluster/node/list", nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		var r struct {
			Data []struct {
				ExtendInfo struct {
					RaftMetaData struct {
						MetaDataMap map[string]struct {
							Leader string `json:"leader"`
						} `json:"metaDataMap"`
					} `json:"raftMetaData"`
				} `json:"extendInfo"`
			} `json:"data"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
			return 0, err
		}
		for _, member := range r.Data {
			leader := member.ExtendInfo.RaftMetaData.MetaDataMap["naming_persistent_service_v2"].Leader
			for i, n := range c.Nodes {
				if leader == loopback(n.port-1000) {
					return i, nil
				}
			}
		}
	}
	return 0, fmt.Errorf("nacostest: the cluster does not say who leads it")
}
