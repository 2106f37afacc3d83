package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/inspect"
)

// serveDecode answers with the parts of a snowflake in Java Leaf's JSON: every value is a string, and the time
// is in the machine's time zone.
func (s *Server) serveDecode(w http.ResponseWriter, r *http.Request) error {
	text := r.URL.Query().Get("snowflakeId")
	bad := &problem{Status: http.StatusBadRequest, Type: "snowflake", Detail: "snowflakeId is a number above 0", Legacy: "snowflake Id反解析发生异常!"}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return bad
	}
	parts, err := s.layout.Decompose(id)
	if err != nil {
		return bad
	}
	answer, err := json.Marshal(map[string]string{
		"timestamp":  fmt.Sprintf("%d(%s)", parts.Time.UnixMilli(), parts.Time.Local().Format("2006-01-02 15:04:05.000")),
		"workerId":   strconv.Itoa(parts.Datacenter<<(s.layout.Worker-s.layout.Datacenter) | parts.Worker),
		"sequenceId": strconv.Itoa(parts.Sequence),
	})
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer)
	return nil
}

// listTemplates are Java Leaf's two tables, for people. Programs use /metrics.
var listTemplates = template.Must(template.New("").Funcs(template.FuncMap{"number": formatNumber}).Parse(`
{{define "cache"}}<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>segments in memory</title>
<table border="1">
<tr><th>name<th>init<th>next<th>pos<th>value0<th>max0<th>step0<th>value1<th>max1<th>step1</tr>
{{range .}}<tr><td>{{.Tag}}<td>{{gt .Fetches 0}}<td>{{gt .Queued.End 0}}<td>0<td>{{.Value}}<td>{{number .Current.End}}<td>{{number .Current.Step}}<td>{{number .Queued.Start}}<td>{{number .Queued.End}}<td>{{number .Queued.Step}}</tr>
{{end}}</table></html>
{{end}}
{{define "db"}}<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>leaf_alloc</title>
<table border="1">
<tr><th>tag<th>max<th>step</tr>
{{range .}}<tr><td>{{.Tag}}<td>{{number .MaxID}}<td>{{number .Step}}</tr>
{{end}}</table></html>
{{end}}`))

// cacheRow is a row of /cache.
type cacheRow struct{ driver.TagStats }

// Value returns the next id.
func (c cacheRow) Value() string { return formatNumber(c.Current.End - c.Left) }

func (s *Server) serveCache(w http.ResponseWriter, r *http.Request) error {
	var list []cacheRow
	for _, t := range s.connector.Stats().Tags {
		list = append(list, cacheRow{t})
	}
	return writeList(w, "cache", list)
}

func (s *Server) serveRows(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Timeout)
	defer cancel()
	list, err := s.rows.read(ctx, s.connector)
	if err != nil {
		return err
	}
	return writeList(w, "db", list)
}

func writeList(w http.ResponseWriter, name string, list any) error {
	var text bytes.Buffer
	if err := listTemplates.ExecuteTemplate(&text, name, list); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	w.Write(text.Bytes())
	return nil
}

// rowCache caches leaf_alloc's rows for one second.
type rowCache struct {
	mu   sync.Mutex
	at   time.Time
	list []control.Row
}

func (c *rowCache) read(ctx context.Context, from *driver.Connector) ([]control.Row, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.at) < time.Second {
		return c.list, nil
	}
	list, err := inspect.Tags(ctx, from)
	if err == nil {
		c.list, c.at = list, time.Now()
	}
	return list, err
}

// formatNumber formats a number with thousands separators, as Java Leaf's pages do.
func formatNumber(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
