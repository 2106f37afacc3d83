package server

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/testutil/idcheck"
)

// TestServerAnswersSegmentRequests: the server answers requests of Java Leaf's clients, and requests for blocks.
func TestServerAnswersSegmentRequests(t *testing.T) {
	db, dsn := createDatabase(t, 100, "orders", "订单/a b")
	addTag(t, db, "from zero", 0, 10)
	_, server := startServer(t, Config{DSN: dsn})
	a := get(t, server+"/api/segment/get/orders")
	a.wantBody(t, "1000")
	if ct := a.header.Get("Content-Type"); ct != "text/plain; charset=utf-8" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("header = %v, want text/plain and no-store", a.header)
	}
	get(t, server+"/api/segment/get/orders?n=5").wantBody(t, "1001,5")
	get(t, server+"/api/segment/get/orders?n=1").wantBody(t, "1006,1")
	get(t, server+"/api/segment/get/orders?other=x").wantBody(t, "1007")
	get(t, server+"/api/segment/get/orders?n=500").wantBody(t, "1008,500") // more than a step, from two adjacent ranges
	get(t, server+"/api/segment/get/"+url.PathEscape("订单/a b")).wantBody(t, "1000")
	get(t, server+"/api/segment/get/from%20zero").wantBody(t, "1")
}

func TestServerAnswersSnowflakeRequests(t *testing.T) {
	_, dsn := createDatabase(t, 100)
	_, server := startServer(t, Config{DSN: dsn + "?leafWorker=static(7)&leafNewRegistry=true&leafSnowflake=41-5%2B5-12"})
	last := int64(0)
	for range 100 {
		a := get(t, server+"/api/snowflake/get/any")
		id, err := strconv.ParseInt(a.body, 10, 64)
		if p, bad := snowflake.Leaf.Decompose(id); a.code != 200 || err != nil || bad != nil || p.Worker != 7 || id <= last {
			t.Fatalf("answer = %d %s, parts %+v, want a snowflake of worker 7 above %d", a.code, a.body, p, last)
		}
		last = id
	}
	if a := get(t, server+"/api/snowflake/get/any?n=4096"); a.code != 200 || !strings.HasSuffix(a.body, ",4096") {
		t.Errorf("answer = %+v, want 200 and a block of 4096", a)
	}
	get(t, server+"/api/snowflake/get/any?n=4097").wantProblem(t, 400, "count")
	if a := get(t, server+"/metrics"); !strings.Contains(a.body, "\nleafsql_http_snowflakes_total 4196\n") {
		t.Errorf("metrics = %s\nwant leafsql_http_snowflakes_total 4196", a.body)
	}
	if a := get(t, server+"/"); !strings.Contains(a.body, "<dt>Snowflakes issued</dt><dd>4,196</dd>") {
		t.Errorf("page = %s\nwant 4,196 snowflakes", a.body)
	}
	if a := get(t, server+"/decodeSnowflakeId?snowflakeId="+strconv.FormatInt(last, 10)); !strings.Contains(a.body, `"workerId":"7"`) {
		t.Errorf("answer = %s, want the worker id 7", a.body)
	}
}

// TestBadRequestsGetProblems: a bad request, and one that cannot be answered, gets a problem and never a number.
func TestBadRequestsGetProblems(t *testing.T) {
	db, dsn := createDatabase(t, 100, "orders")
	addTag(t, db, "bad step", 1, 0)
	exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('used up', 9223372036854775800, 100)")
	_, server := startServer(t, Config{DSN: dsn, MaxBlock: 500, NoSnowflakes: true})
	for _, tt := range []struct {
		method, path string
		code         int
		kind         string
	}{
		{"GET", "/api/segment/get/nosuch", 404, "unknown-tag"},
		{"GET", "/api/segment/get/Orders", 404, "unknown-tag"}, // compared exactly, as in Java Leaf
		{"GET", "/api/segment/get/orders%20", 404, "unknown-tag"},
		{"GET", "/api/segment/get/%00", 404, "unknown-tag"},
		{"GET", "/api/segment/get/%ff%fe", 404, "unknown-tag"},
		{"GET", "/api/segment/get/" + strings.Repeat("a", 129), 404, "unknown-tag"},
		{"GET", "/api/segment/get/", 404, "not-found"},
		{"GET", "/api/segment/get", 404, "not-found"},
		{"GET", "/api/segment/get/orders/more", 404, "not-found"},
		{"GET", "/api/segment/get/orders?n=0", 400, "count"},
		{"GET", "/api/segment/get/orders?n=-1", 400, "count"},
		{"GET", "/api/segment/get/orders?n=", 400, "count"},
		{"GET", "/api/segment/get/orders?n=1.5", 400, "count"},
		{"GET", "/api/segment/get/orders?n=501", 400, "count"},
		{"GET", "/api/segment/get/orders?n=99999999999999999999", 400, "count"},
		{"GET", "/api/segment/get/orders?n=1&n=2", 400, "count"},
		{"GET", "/api/segment/get/orders?%zz", 400, "count"},
		{"HEAD", "/api/segment/get/orders", 405, ""},
		{"POST", "/api/segment/get/orders", 405, "method"},
		{"DELETE", "/db", 405, "method"},
		{"GET", "/api/snowflake/get/any", 404, "disabled"},
		{"GET", "/api/segment/get/bad%20step", 500, "row"},
		{"GET", "/api/segment/get/used%20up", 500, "row"},
		{"GET", "/decodeSnowflakeId", 400, "snowflake"},
		{"GET", "/decodeSnowflakeId?snowflakeId=x", 400, "snowflake"},
		{"GET", "/decodeSnowflakeId?snowflakeId=0", 400, "snowflake"},
		{"GET", "/nosuch", 404, "not-found"},
	} {
		t.Run(tt.method+tt.path, func(t *testing.T) {
			a := do(t, tt.method, server+tt.path)
			if tt.kind == "" {
				if a.code != tt.code {
					t.Errorf("status = %d, want %d", a.code, tt.code)
				}
				return
			}
			a.wantProblem(t, tt.code, tt.kind)
		})
	}
	r, _ := http.NewRequest("GET", server+"/api/segment/get/orders", strings.NewReader("body"))
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 413 {
		t.Errorf("request with a body: status %v, %v, want 413", res.StatusCode, err)
	}
	res.Body.Close()
	if a := get(t, server+"/api/segment/get/orders", "Sec-Fetch-Site", "cross-site"); a.code != 403 {
		t.Errorf("answer to a cross-site request = %+v, want 403", a)
	}
	get(t, server+"/api/segment/get/orders", "Sec-Fetch-Site", "none").wantBody(t, "1000") // no other request used up an id

	_, none := startServer(t, Config{DSN: dsn, NoSegments: true})
	get(t, none+"/api/segment/get/orders").wantProblem(t, 404, "disabled")
}

// TestNewTagIsFound: a tag is found by the first request after it was added, even if it was requested just before.
func TestNewTagIsFound(t *testing.T) {
	db, dsn := createDatabase(t, 100)
	_, server := startServer(t, Config{DSN: dsn})
	for i := range 20 {
		tag := "t" + strconv.Itoa(i)
		get(t, server+"/api/segment/get/"+tag).wantProblem(t, 404, "unknown-tag")
		addTag(t, db, tag, 7, 10)
		get(t, server+"/api/segment/get/"+tag).wantBody(t, "7")
	}
	// A deleted row gives no ids after those in memory; its counter is remembered.
	exec(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 't0'")
	var a answer
	for range 100 {
		if a = get(t, server+"/api/segment/get/t0"); a.code != 200 {
			break
		}
	}
	a.wantProblem(t, 404, "unknown-tag")
	addTag(t, db, "t0", 1, 10)
	get(t, server+"/api/segment/get/t0").wantProblem(t, 500, "row")
}

// TestColdTagServesConcurrentClients: 64 concurrent clients of a tag with a far too small step get no error and no id twice.
func TestColdTagServesConcurrentClients(t *testing.T) {
	_, dsn := createDatabase(t, 10, "orders")
	_, server := startServer(t, Config{DSN: dsn})
	var ids idcheck.Collector
	var wg sync.WaitGroup
	for range 64 {
		r := ids.Recorder()
		wg.Go(func() {
			for range 50 {
				a, err := sendRequest(context.Background(), "GET", server+"/api/segment/get/orders")
				id, bad := strconv.ParseInt(a.body, 10, 64)
				if err != nil || a.code != 200 || bad != nil {
					t.Errorf("answer = %d %s, %v, want an id", a.code, a.body, err)
					return
				}
				r.Add(id, 1)
			}
		})
	}
	wg.Wait()
	if got := ids.Verify(t); got.Issued != 64*50 {
		t.Errorf("report = %+v, want %d ids", got, 64*50)
	}
}

// TestLoweredRowIssuesNoIDTwice: ids are not issued twice after somebody lowered the row. The row moves up again, or is
// refused if marks are disabled for it.
func TestLoweredRowIssuesNoIDTwice(t *testing.T) {
	db, dsn := createDatabase(t, 10, "orders")
	_, server := startServer(t, Config{DSN: dsn})
	var seen []string
	for i := range 5000 {
		if i == 50 {
			exec(t, db, "UPDATE leaf_alloc SET max_id = 1")
		}
		if i == 500 {
			if id, _ := strconv.ParseInt(seen[len(seen)-1], 10, 64); id < 1<<36 {
				t.Errorf("id after the row was lowered = %d, want one a margin higher", id)
			}
			exec(t, db, "UPDATE leaf_alloc SET max_id = 1, description = 'leafsql@off'")
		}
		a := get(t, server+"/api/segment/get/orders")
		if a.code != 200 {
			a.wantProblem(t, 500, "row")
			if i < 500 || !strings.Contains(a.body, "went back") {
				t.Errorf("error of request %d = %s, want \"went back\" and none of the first 500", i, a.body)
			}
			return
		}
		if slices.Contains(seen, a.body) {
			t.Fatalf("id %s was issued twice, want it once", a.body)
		}
		seen = append(seen, a.body)
	}
	t.Error("requests were never refused, want an error after the row was lowered")
}
