package docs

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// A shopMove is one run of a page that moves the shop's rows between databases, while the shop's program runs.
type shopMove struct {
	t *testing.T
	shell
	running *program
	log     *requests
}

// requestsPerBlock is the number of requests that the program completes between two blocks of
// the page.
const requestsPerBlock = 40

// prepareHosts removes the page's databases from its servers, and creates the administrator.
func (o *shopMove) prepareHosts() {
	for name := range o.hosts {
		runSQL(o.t, o.hosts, "-- on "+name+"\nDROP DATABASE IF EXISTS shop;\nDROP DATABASE IF EXISTS leaf;\nDROP USER IF EXISTS app, admin;\n"+
			"CREATE USER admin IDENTIFIED BY 'secret';\nGRANT ALL PRIVILEGES ON *.* TO admin WITH GRANT OPTION;\n")
	}
}

// end stops the program, and prints the results of its requests.
func (o *shopMove) end() {
	if o.running != nil {
		o.running.stop()
	}
	o.log.print(o.t)
}

// runBlock runs a block of the page, and waits for requests of the program.
func (o *shopMove) runBlock(page string, b block) {
	o.t.Logf("%s:%d", page, b.line)
	switch b.lang {
	case "sql":
		runSQL(o.t, o.hosts, b.code)
	case "sh":
		o.shell.run(o.t, b.code)
	case "sh deploy", "sh restart":
		o.deploy(b.code, b.lang == "sh restart")
	default:
		o.t.Fatalf("%s:%d: a block of %q, want sql, sh, sh deploy or sh restart", page, b.line, b.lang)
	}
	if o.running != nil {
		o.running.awaitRequests(requestsPerBlock)
	}
}

var setting = regexp.MustCompile(`(?m)^(\w+)='?(.*?)'?$`)

// deploy starts the program with the settings of a block. It ends the running program afterwards, or before it if the
// page requires that.
func (o *shopMove) deploy(code string, restart bool) {
	settings := map[string]string{}
	for _, m := range setting.FindAllStringSubmatch(replaceAddresses(o.hosts, code), -1) {
		settings[m[1]] = m[2]
	}
	before := o.running
	if restart {
		o.running = nil
		before.stop()
	}
	o.running = start(o.t, settings, o.log)
	if before != nil && !restart {
		o.running.awaitRequests(requestsPerBlock) // both programs are running
		before.stop()
	}
}

// verify compares the databases with the acknowledged requests: every order is stored exactly once, with its last values
// and all its items and notes, in the same database. It returns the number of orders in each database.
func (o *shopMove) verify() map[string]int {
	t := o.t
	t.Helper()
	if o.running != nil {
		o.running.gate.Lock()
		defer o.running.gate.Unlock()
	}
	stored, where, rows := map[int64]shopOrder{}, map[int64]string{}, map[string]int{}
	seen, twice, apart := map[string]bool{}, 0, 0
	for _, name := range slices.Sorted(maps.Keys(o.hosts)) {
		o.readRows(name, "orders", "id, id, customer, total", func(id, order int64, customer, total int) {
			if stored[id] = (shopOrder{customer: customer, total: total}); where[id] != "" {
				twice++
			}
			where[id] = name
			rows[name]++
		})
		for _, tab := range []string{"items", "notes"} {
			o.readRows(name, tab, "id, order_id, 0, 0", func(id, order int64, _, _ int) {
				if key := fmt.Sprint(tab, id); seen[key] {
					twice++
				} else {
					seen[key] = true
				}
				if where[order] != name {
					apart++
				}
				of := stored[order]
				if tab == "items" {
					of.items++
				} else {
					of.notes++
				}
				stored[order] = of
			})
		}
	}
	want := o.log.expected()
	lost, different, extra := 0, 0, 0
	for id, order := range want {
		if got, ok := stored[id]; !ok {
			lost++
		} else if got != order {
			different++
			t.Logf("order %d is %+v in %s, want %+v", id, got, where[id], order)
		}
	}
	for id := range stored {
		if _, ok := want[id]; !ok {
			extra++
		}
	}
	t.Logf("orders: %v, canceled: %d; ids twice: %d, lost: %d, different: %d, canceled or unknown: %d, rows apart from their order: %d", rows, len(o.log.canceled), twice, lost, different, extra, apart)
	if twice+lost+different+extra+apart != 0 || len(want) == 0 {
		t.Errorf("of %d orders, the numbers of ids twice, orders lost, different, canceled or unknown, and rows apart are %d, %d, %d, %d and %d, want 0",
			len(want), twice, lost, different, extra, apart)
	}
	return rows
}

// readRows reads four numbers of each row of a table. A database that the page has not created yet has no rows.
func (o *shopMove) readRows(host, table, columns string, add func(id, order int64, customer, total int)) {
	t := o.t
	t.Helper()
	db := open(t, o.hosts[host])
	defer db.Close()
	rows, err := db.Query("SELECT " + columns + " FROM shop." + table)
	var missing *mysql.MySQLError
	if errors.As(err, &missing) && (missing.Number == 1049 || missing.Number == 1146) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, order int64
		var customer, total int
		if err := rows.Scan(&id, &order, &customer, &total); err != nil {
			t.Fatal(err)
		}
		add(id, order, customer, total)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
