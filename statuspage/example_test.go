package statuspage_test

import (
	"database/sql"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/statuspage"
)

func ExampleNew() {
	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	server := httptest.NewServer(statuspage.New(db, "shop"))
	defer server.Close()

	page, err := http.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer page.Body.Close()
	fmt.Println(page.Status, page.Header.Get("Content-Type"))
	// Output: 200 OK text/html; charset=utf-8
}

// A page of statistics from another source, or with some values removed.
func ExampleOf() {
	stats := func() (driver.Stats, error) {
		return driver.Stats{Tables: []driver.TableStats{{Name: "shop.orders", Generator: string(driver.Segment), IDs: 12}}}, nil
	}
	server := httptest.NewServer(statuspage.Of(stats, "shop"))
	defer server.Close()

	page, err := http.Get(server.URL)
	if err != nil {
		log.Fatal(err)
	}
	defer page.Body.Close()
	fmt.Println(page.Status)
	// Output: 200 OK
}

func ExampleOfPools() {
	pools := make(map[string]*sql.DB)
	for _, name := range []string{"shop0", "shop1"} {
		db, err := sql.Open("mysql-leaf", "app:secret@tcp("+name+":3306)/shop?leafTables=orders")
		if err != nil {
			log.Fatal(err)
		}
		defer db.Close()
		pools[name] = db
	}
	page := statuspage.OfPools(pools, "shop")
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequest("GET", "/leafsql", nil))
	fmt.Println(answer.Code)
	// Output: 200
}
