package server

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDecodeAnswersLikeJavaLeaf: the answers, and the member of errors, are those of Java Leaf.
func TestDecodeAnswersLikeJavaLeaf(t *testing.T) {
	_, server := startServer(t, Config{DSN: "app@tcp(127.0.0.1:1)/away"}) // decoding needs no database
	at := time.UnixMilli(1288834974657 + 123456)
	a := get(t, server+fmt.Sprintf("/decodeSnowflakeId?snowflakeId=%d", 123456<<22|1023<<12|4095))
	var got map[string]string
	err := json.Unmarshal([]byte(a.body), &got)
	want := map[string]string{
		"timestamp": fmt.Sprintf("%d(%s)", at.UnixMilli(), at.Local().Format("2006-01-02 15:04:05.000")), "workerId": "1023", "sequenceId": "4095",
	}
	if err != nil || !maps.Equal(got, want) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("answer = %s, %v, want %v", a.body, err, want)
	}
	if a := get(t, server+"/decodeSnowflakeId?snowflakeId=x"); !strings.Contains(a.body, `"errorMsg":"snowflake Id反解析发生异常!"`) {
		t.Errorf("answer = %s, want the errorMsg of Java Leaf", a.body)
	}
}

// TestListsShowJavaLeafsTables: the server shows Java Leaf's two tables.
func TestListsShowJavaLeafsTables(t *testing.T) {
	db, dsn := createDatabase(t, 2000, "orders", "<b>&")
	s, server := startServer(t, Config{DSN: dsn})
	for range 30 {
		get(t, server+"/api/segment/get/orders")
	}
	waitFor(t, "a full range", func() bool { return s.tagStats("orders").Remaining > 1000 })
	st := s.tagStats("orders")
	if a := get(t, server+"/cache"); a.code != 200 || !strings.Contains(cells(a.body), "|orders|true|") ||
		!strings.Contains(cells(a.body), "|"+formatNumber(st.Current.End-st.Left)+"|"+formatNumber(st.Current.End)+"|") {
		t.Errorf("page /cache = %s\nwant the numbers of %+v", a.body, st)
	}
	a := get(t, server+"/db")
	if a.code != 200 || !strings.Contains(cells(a.body), "|&lt;b&gt;&amp;|1,000|2,000</tr>") || !strings.Contains(a.header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("page /db = %s\nwant the escaped tag with its numbers", a.body)
	}
	exec(t, db, "DROP TABLE leaf_alloc")
	waitFor(t, "read again", func() bool { return get(t, server+"/db").code == 503 })
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1: "-1", -1000: "-1,000", 1234567: "1,234,567"} {
		if got := formatNumber(n); got != want {
			t.Errorf("formatNumber(%d) = %s, want %s", n, got, want)
		}
	}
}

// cells returns a page with each cell as a text after a vertical bar.
func cells(page string) string {
	return regexp.MustCompile(`<t[hd] [^>]*>`).ReplaceAllString(strings.NewReplacer("</td>", "", "</th>", "", "<span>", "", "</span>", "").Replace(page), "|")
}
