package main

import "fmt"

// fleetPlots are the pictures of docs/scale.md, from the figures of make fleet.
var fleetPlots = []plot{
	{"fleet-start", "The whole fleet starts: statements at leaf_alloc's server in the busiest second", []panel{
		fleetPanel("10 tags, within one second", "", "start=1s", "busiest/s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("10 tags, within a minute", "", "start=1m", "busiest/s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("10 tags, within 30 minutes", "", "start=30m", "busiest/s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("1,000 tags, within one second", "", "tags=1000", "busiest/s", 10, 100, 1000),
	}},
	{"fleet-wait", "The whole fleet starts: the longest wait of an INSERT, in seconds", []panel{
		fleetPanel("10 tags, within one second", "s", "start=1s", "longest-s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("10 tags, within a minute", "s", "start=1m", "longest-s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("10 tags, within 30 minutes", "s", "start=30m", "longest-s", 10, 100, 1000, 10_000, 100_000),
		fleetPanel("one tag, within one second", "s", "hot-row", "longest-s", 10, 100, 1000, 10_000, 100_000),
	}},
	{"fleet-leases", "Worker ids from leaf_worker: renewals", []panel{
		fleetPanel("in a second, on average", "", "leases", "renewals/s", 10, 100, 1000),
		fleetPanel("in the busiest second", "", "leases", "busiest-renewals/s", 10, 100, 1000),
	}},
}

// fleetPanel returns a panel with a bar for each number of processes.
func fleetPanel(title, unit, name, figure string, processes ...int) panel {
	p := panel{title: title, unit: unit, logarithmic: true}
	for _, n := range processes {
		p.bars = append(p.bars, bar{formatNumber(float64(n)) + " processes", []string{fmt.Sprintf("testutil/fleet BenchmarkFleet/%s/processes=%d %s", name, n, figure)}, true})
	}
	return p
}
