// Command gorm-nacos stores a row through GORM. Its worker id is leased through the program's own Nacos clients.
package main

import (
	"context"
	"database/sql"
	"log"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos"
)

// Event is a row of the table events, which has no AUTO_INCREMENT.
type Event struct {
	ID   int64 `gorm:"primaryKey;autoIncrement:false;default:(-)"`
	What string
}

func main() {
	param := vo.NacosClientParam{
		// No NamespaceId: the default namespace. leafsql refuses a config client without DisableUseSnapShot.
		ClientConfig:  constant.NewClientConfig(constant.WithDisableUseSnapShot(true)),
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig("n1", 8848)},
	}
	configs, err := clients.NewConfigClient(param)
	if err != nil {
		log.Fatal(err)
	}
	names, err := clients.NewNamingClient(param)
	if err != nil {
		log.Fatal(err)
	}
	cfg, err := driver.ParseDSN("app:secret@tcp(127.0.0.1:3306)/shop?parseTime=true&leafTables=orders,events:id:snowflake")
	if err != nil {
		log.Fatal(err)
	}
	cfg.WorkerSource = func(ctx context.Context) (worker.Source, error) {
		return nacos.Open(ctx, nacos.Config{
			ConfigClient: configs,
			NamingClient: names,
			Instance:     nacos.Instance{IP: "10.0.0.7", Port: 8080}, // the address of this service
		})
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		log.Fatal(err)
	}
	pool := sql.OpenDB(connector)
	defer pool.Close() // releases the worker id, and does not close the clients
	db, err := gorm.Open(mysql.New(mysql.Config{Conn: pool}), &gorm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute) // longer than the wait of a new registry
	defer cancel()
	if err := driver.Ready(ctx, pool); err != nil { // takes the worker id
		log.Fatal(err)
	}
	event := Event{What: "started"}
	if err := db.Create(&event).Error; err != nil {
		log.Fatal(err)
	}
	log.Println("stored with id", event.ID)
}
