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
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/internal/pageextra"
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

// listTemplate shows one of Java Leaf's two tables, for people, with Java Leaf's names of columns. Programs use /metrics.
var listTemplate = template.Must(template.New("").Funcs(template.FuncMap{
	"css": func() template.CSS { return template.CSS(pageextra.CSS) },
}).Parse(`<!DOCTYPE html>
<html lang="{{.Language}}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{{.Title}} · leafsql</title>
<style>{{css}}</style>
</head>
<body>
<header><h1>{{.Title}}</h1><nav><a href=".">{{.Back}}</a></nav></header>
<main><section>
<table role="table" class="plain">
<thead role="rowgroup"><tr role="row">{{range $i, $name := .Columns}}<th role="columnheader" scope="col"{{if $i}} class="n"{{end}}>{{$name}}{{end}}</tr></thead>
{{range .Rows}}<tbody role="rowgroup"><tr role="row">{{range $i, $cell := .}}{{if $i}}<td role="cell" class="n" data-name="{{index $.Columns $i}}">{{$cell}}</td>{{else}}<th role="rowheader" scope="row"><span>{{$cell}}</span></th>{{end}}{{end}}</tr></tbody>
{{end}}</table>
</section></main>
</body>
</html>
`))

// A listPage is a page with one table, whose first column has names.
type listPage struct {
	Language, Title, Back string
	Columns               []string
	Rows                  [][]string
}

// listPolicy is the Content-Security-Policy of a list.
var listPolicy = "default-src 'none'; style-src " + pageextra.Hash(pageextra.CSS) + "; img-src data:; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) serveCache(w http.ResponseWriter, r *http.Request) error {
	var rows [][]string
	for _, t := range s.connector.Stats().Tags {
		rows = append(rows, []string{
			t.Tag, strconv.FormatBool(t.Fetches > 0), strconv.FormatBool(t.Queued.End > 0), "0",
			formatNumber(t.Current.End - t.Left), formatNumber(t.Current.End), formatNumber(t.Current.Step),
			formatNumber(t.Queued.Start), formatNumber(t.Queued.End), formatNumber(t.Queued.Step),
		})
	}
	return writeList(w, r, "Ranges in memory", []string{"name", "init", "next", "pos", "value0", "max0", "step0", "value1", "max1", "step1"}, rows)
}

func (s *Server) serveRows(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.Timeout)
	defer cancel()
	list, err := s.rows.read(ctx, s.connector)
	if err != nil {
		return err
	}
	var rows [][]string
	for _, row := range list {
		rows = append(rows, []string{row.Tag, formatNumber(row.MaxID), formatNumber(row.Step)})
	}
	return writeList(w, r, "Rows of leaf_alloc", []string{"tag", "max", "step"}, rows)
}

func writeList(w http.ResponseWriter, r *http.Request, title string, columns []string, rows [][]string) error {
	texts, language := chinese.Texts(nil), "en"
	if pageextra.PrefersChinese(r) {
		texts, language = pageextra.Titles, "zh-CN"
	}
	var text bytes.Buffer
	if err := listTemplate.Execute(&text, listPage{language, texts.Text(title), texts.Text("Ids over HTTP"), columns, rows}); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", listPolicy)
	w.Header().Set("Vary", "Accept-Language")
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
