package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// A console reads data from Nacos, only over HTTP.
type console struct{ addr string }

// An instance is an entry of a service's list.
type instance struct {
	IP       string            `json:"ip"`
	Port     int               `json:"port"`
	Metadata map[string]string `json:"metadata"`
}

func (i instance) addr() string { return fmt.Sprintf("%s:%d", i.IP, i.Port) }

// A lease is a worker id with its holder.
type lease struct {
	worker int
	addr   string // address of the service
	doc    worker.Doc
}

func (c console) get(ctx context.Context, path string, query url.Values) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+c.addr+"/nacos/v1/"+path+"?"+query.Encode(), nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("asking Nacos: %w", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, body, err
}

// instances returns the instances of a service.
func (c console) instances(ctx context.Context, service string) ([]instance, error) {
	code, body, err := c.get(ctx, "ns/instance/list", url.Values{"serviceName": {service}})
	if err != nil {
		return nil, err
	}
	var list struct {
		Hosts []instance `json:"hosts"`
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("listing %s in Nacos: HTTP %d", service, code)
	}
	return list.Hosts, json.Unmarshal(body, &list)
}

// leases returns the holders of the worker ids. Each holder is a persistent
// instance of the service "leafsql", with a config that contains the lease's end.
func (c console) leases(ctx context.Context) ([]lease, error) {
	holders, err := c.instances(ctx, "leafsql")
	if err != nil {
		return nil, err
	}
	var all []lease
	for _, h := range holders {
		l := lease{addr: h.addr()}
		if l.worker, err = strconv.Atoi(h.Metadata["workerId"]); err != nil {
			return nil, fmt.Errorf("an instance of leafsql without a worker id: %w", err)
		}
		if l.doc, err = c.doc(ctx, l.worker); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b lease) int { return cmp.Compare(a.addr, b.addr) })
	return all, nil
}

// doc reads the document of a worker id.
func (c console) doc(ctx context.Context, id int) (worker.Doc, error) {
	name := "leafsql.worker." + strconv.Itoa(id)
	code, body, err := c.get(ctx, "cs/configs", url.Values{"dataId": {name}, "group": {"DEFAULT_GROUP"}})
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("reading %s in Nacos: HTTP %d", name, code)
	}
	if err != nil {
		return worker.Doc{}, err
	}
	var d worker.Doc
	err = d.Decode(string(body))
	return d, err
}

// prepare creates the documents of all worker ids of a new registry. Without
// them, the first processes would wait for 135 s, because the registry's history
// would be unknown.
func prepare(ctx context.Context, addr string) error {
	open, err := worker.Lookup("nacos("+addr+")", nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute) // 10 s on an idle machine
	defer cancel()
	return worker.Prepare(ctx, open, worker.Config{Layout: snowflake.Leaf.String(), NewRegistry: true})
}
