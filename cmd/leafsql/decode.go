package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/idgen/snowflake"
)

func runDecode(_ context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "decode").withJSON()
	layout := snowflake.Leaf
	f.Func("layout", "`TIME-WORKER-SEQUENCE[@EPOCH]`, as in leafSnowflake (default 41-10-12@1288834974657, Leaf's)", func(text string) (err error) {
		layout, err = snowflake.ParseLayout(text)
		return err
	})
	if err := f.parse(args, true); err != nil {
		return exitFailure, err
	}
	ids := f.Args()
	if slices.Equal(ids, []string{"-"}) {
		text, err := io.ReadAll(os.Stdin)
		if err != nil {
			return exitFailure, fmt.Errorf("leafsql: decode: %w; pass the ids as arguments", err)
		}
		ids = strings.Fields(string(text))
	}
	if len(ids) == 0 {
		return exitFailure, errors.New("leafsql: decode: no id is given; run leafsql decode 1234567890123456789, or pass - to read ids from standard input")
	}
	type decoded struct {
		ID         string    `json:"id"` // many JSON parsers round numbers above 2^53
		Time       time.Time `json:"time"`
		Datacenter *int      `json:"datacenter,omitempty"`
		Worker     int       `json:"worker"`
		Sequence   int       `json:"sequence"`
	}
	names := []string{"ID", "TIME", "WORKER", "SEQUENCE"}
	if layout.Datacenter > 0 {
		names = []string{"ID", "TIME", "DATA CENTRE", "WORKER", "SEQUENCE"}
	}
	var all []decoded
	var rows [][]string
	for _, text := range ids {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return exitFailure, fmt.Errorf("leafsql: %q is not an id; write a whole number in 1 … 9223372036854775807", text)
		}
		p, err := layout.Decompose(id)
		if err != nil {
			return exitFailure, err
		}
		d := decoded{ID: strconv.FormatInt(id, 10), Time: p.Time.UTC(), Worker: p.Worker, Sequence: p.Sequence}
		row := []string{text, d.Time.Format("2006-01-02T15:04:05.000Z07:00")}
		if layout.Datacenter > 0 {
			d.Datacenter = &p.Datacenter
			row = append(row, strconv.Itoa(p.Datacenter))
		}
		all = append(all, d)
		rows = append(rows, append(row, strconv.Itoa(p.Worker), strconv.Itoa(p.Sequence)))
	}
	if f.json {
		return exitOK, s.JSON(all)
	}
	s.Table(names, rows, "ID", "DATA CENTRE", "WORKER", "SEQUENCE")
	return exitOK, nil
}
