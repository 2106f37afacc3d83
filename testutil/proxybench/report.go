//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

func (r result) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", r.name)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ta second\tp50 µs\tp99 µs\tserver's CPU µs\town CPU µs\tquestions\t")
	for way, m := range r.ways {
		own := "-"
		if way != direct {
			own = fmt.Sprintf("%.0f", m.perOperation(m.between))
		}
		fmt.Fprintf(table, "%s\t%.0f\t%d\t%d\t%.0f\t%s\t%.2f\t\n", wayNames[way], m.rate(), m.percentile(50).Microseconds(), m.percentile(99).Microseconds(),
			m.perOperation(m.server), own, float64(m.questions)/float64(len(m.took)))
	}
	table.Flush()
}

// The limits for the proxy.
const (
	cpuOfPointSelect = 2.0  // times HAProxy's processor time
	cpuOfRows        = 1.3  // times HAProxy's processor time
	throughput       = 0.85 // fraction of HAProxy's rate, with 16 clients
	questions        = 1.05 // statements for each filled INSERT, including fetches of ranges
	idleBytes        = 12 << 10
)

// printLimits prints the limits with the results, and reports whether all hold.
func printLimits(out io.Writer, results []result, idles []idleMemory) (all bool) {
	all = true
	fmt.Fprintln(out)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	hold := func(what string, got, limit float64, holds bool) {
		verdict := "holds"
		if !holds {
			verdict, all = "DOES NOT HOLD", false
		}
		fmt.Fprintf(table, "%s\t%.2f\t%.2f\t%s\n", what, got, limit, verdict)
	}
	fmt.Fprintln(table, "what\tmeasured\tlimit\t")
	most := func(what string, got, limit float64) { hold(what, got, limit, got <= limit) }
	for _, r := range results {
		proxy, haproxy := r.ways[throughProxy], r.ways[throughHAProxy]
		ratio := float64(proxy.between) / float64(max(haproxy.between, tick)) * float64(len(haproxy.took)) / float64(len(proxy.took))
		switch {
		case strings.HasPrefix(r.name, "point SELECT"):
			most(r.name+": CPU, of HAProxy's", ratio, cpuOfPointSelect)
		case strings.HasPrefix(r.name, "100,000 rows"):
			most(r.name+": CPU, of HAProxy's", ratio, cpuOfRows)
		case strings.HasPrefix(r.name, "INSERT"):
			most(r.name+": questions", float64(proxy.questions)/float64(len(proxy.took)), questions)
		}
		switch got := proxy.rate() / haproxy.rate(); {
		case r.clients > 1 && strings.HasPrefix(r.name, "point SELECT"):
			hold(r.name+": rate, of HAProxy's", got, throughput, got >= throughput)
		case r.clients > 1: // the server has more work, too
			fmt.Fprintf(table, "%s: rate, of HAProxy's\t%.2f\t\t\n", r.name, got)
		}
	}
	for _, i := range idles {
		if i.limited {
			most(fmt.Sprintf("%d idle connections, %s: bytes each", i.connections, i.what), i.bytesPerConnection(), idleBytes)
		} else {
			fmt.Fprintf(table, "%d idle connections, %s: bytes each\t%.2f\t\t\n", i.connections, i.what, i.bytesPerConnection())
		}
	}
	table.Flush()
	return all
}

// An idleMemory contains the memory for idle connections.
type idleMemory struct {
	what        string
	connections int
	before      int64 // bytes
	after       int64
	took        time.Duration
	limited     bool
}

func (i idleMemory) bytesPerConnection() float64 {
	return float64(i.after-i.before) / float64(i.connections)
}
