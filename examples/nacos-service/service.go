package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/driver"
	_ "github.com/leafsql/leafsql/nacos"
)

// serviceEnv makes this program one of the services, and holds its settings as
// JSON.
const serviceEnv = "LEAFSQL_NACOS_SERVICE"

// serviceName is what the services are registered as.
const serviceName = "shop-orders"

// Settings are a service's own.
type settings struct {
	Name  string        // of this instance
	Host  string        // the address it listens on
	DSN   string        // of its database, without leafsql's parameters
	Nacos string        // host:port
	Dir   string        // where the SDK may write
	Ahead time.Duration // how far its clock is ahead
}

// An order is what a service answers: the row's id, and who gave it.
type order struct {
	ID      int64  `json:"id"`
	Service string `json:"service"`
}

// serve is the life of a service: it takes orders over HTTP and is found
// through Nacos, like any other.
func serve() error {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv(serviceEnv)), &s); err != nil {
		return err
	}
	// Whoever started it holds the other end: it never outlives the demo.
	go func() { io.Copy(io.Discard, os.Stdin); os.Exit(1) }()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()

	listener, err := net.Listen("tcp", net.JoinHostPort(s.Host, "0"))
	if err != nil {
		return err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	db, err := s.open(ctx, port)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: s.handler(db)}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	registered, err := s.register(port)
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	select {
	case err = <-failed:
	case <-ctx.Done(): // no more customers, then no more orders, then the worker id
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = errors.Join(registered.end(ctx), server.Shutdown(ctx), db.Close())
	}
	return err
}

// open opens the pool. This is all that leafsql needs: another driver name and
// its parameters. IP and port are for people who look at Nacos' console.
func (s settings) open(ctx context.Context, port int) (*sql.DB, error) {
	dsn := s.DSN + "?leafTables=orders:id:snowflake&leafWorker=nacos(" + s.Nacos + ")" +
		"&leafNacosIP=" + s.Host + "&leafNacosPort=" + strconv.Itoa(port)
	if s.Ahead != 0 {
		return openAhead(ctx, dsn, s.Ahead)
	}
	return sql.Open(driver.Name, dsn)
}

// handler inserts an order for each POST, and knows nothing of ids.
func (s settings) handler(db *sql.DB) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		res, err := db.ExecContext(r.Context(), "INSERT INTO orders (service, customer) VALUES (?, ?)", s.Name, r.FormValue("customer"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		id, err := res.LastInsertId()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		json.NewEncoder(w).Encode(order{id, s.Name})
	})
	return mux
}

// A registration is this service's entry in Nacos, an ephemeral one: it is
// gone as soon as the process is.
type registration struct {
	client naming_client.INamingClient
	host   string
	port   uint64
}

func (s settings) register(port int) (*registration, error) {
	host, nacosPort, err := net.SplitHostPort(s.Nacos)
	if err != nil {
		return nil, err
	}
	p, err := strconv.ParseUint(nacosPort, 10, 16)
	if err != nil {
		return nil, err
	}
	client, err := clients.NewNamingClient(vo.NacosClientParam{
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig(host, p)},
		ClientConfig: constant.NewClientConfig(
			constant.WithNotLoadCacheAtStart(true), constant.WithLogLevel("error"),
			constant.WithLogDir(s.Dir), constant.WithCacheDir(s.Dir)),
	})
	if err != nil {
		return nil, err
	}
	r := &registration{client, s.Host, uint64(port)}
	ok, err := client.RegisterInstance(vo.RegisterInstanceParam{
		ServiceName: serviceName, Ip: r.host, Port: r.port, Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
		Metadata: map[string]string{"name": s.Name},
	})
	if err == nil && !ok {
		err = errors.New("it was refused")
	}
	if err != nil {
		return nil, fmt.Errorf("registering %s in Nacos: %w", s.Name, err)
	}
	return r, nil
}

// end tries until ctx ends: after an outage Nacos may answer already and the
// client not yet have come back to it.
func (r *registration) end(ctx context.Context) error {
	defer r.client.CloseClient()
	for {
		_, err := r.client.DeregisterInstance(vo.DeregisterInstanceParam{ServiceName: serviceName, Ip: r.host, Port: r.port, Ephemeral: true})
		if err == nil {
			return nil
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}
