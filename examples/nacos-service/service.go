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

// serviceEnv is the environment variable with the settings of a service, as JSON.
// If it is set, this program is a service.
const serviceEnv = "LEAFSQL_NACOS_SERVICE"

// serviceName is the name under which the services are registered.
const serviceName = "shop-orders"

// settings are the settings of one service.
type settings struct {
	Name  string        // name of this instance
	Host  string        // the address it listens on
	DSN   string        // DSN of its database, without leafsql's parameters
	Nacos string        // host:port
	Dir   string        // folder for the SDK
	Ahead time.Duration // time by which its clock is ahead
}

// An order is a service's answer: the row's id, and the service's name.
type order struct {
	ID      int64  `json:"id"`
	Service string `json:"service"`
}

// serve runs a service: it takes orders over HTTP and is registered in Nacos,
// like any other.
func serve() error {
	var s settings
	if err := json.Unmarshal([]byte(os.Getenv(serviceEnv)), &s); err != nil {
		return err
	}
	// The demo holds the other end of the pipe, so the service ends with the demo.
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
	case <-ctx.Done(): // first no customer comes any more, then the orders end, then the worker id is released
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		err = errors.Join(registered.end(ctx), server.Shutdown(ctx), db.Close())
	}
	return err
}

// open opens the pool. For leafsql, only the driver name and parameters are
// needed. IP and port are shown in Nacos' console.
func (s settings) open(ctx context.Context, port int) (*sql.DB, error) {
	dsn := s.DSN + "?leafTables=orders:id:snowflake&leafWorker=nacos(" + s.Nacos + ")" +
		"&leafNacosIP=" + s.Host + "&leafNacosPort=" + strconv.Itoa(port)
	if s.Ahead != 0 {
		return openAhead(ctx, dsn, s.Ahead)
	}
	return sql.Open(driver.Name, dsn)
}

// handler inserts an order for each POST, without any code for ids.
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

// A registration is this service's ephemeral entry in Nacos: it disappears when
// the process ends.
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

// end removes the registration, and retries until ctx ends: after an outage
// Nacos may answer before its client has reconnected.
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
