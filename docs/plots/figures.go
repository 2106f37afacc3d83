package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A figure has the results of one benchmark in one unit, one for each run.
type figure struct {
	median, lowest, highest float64
}

// parseFigures returns the figures of a file in the format of go test -bench, by "package benchmark unit". It
// ignores the lines about the machine, and the number of cores after a benchmark's name.
func parseFigures(text string) (map[string]figure, error) {
	runs := map[string][]float64{}
	folder := ""
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "pkg:":
			folder = strings.TrimPrefix(words[1], module)
		case len(words) >= 4 && len(words)%2 == 0 && strings.HasPrefix(words[0], "Benchmark"):
			name := words[0]
			if at := strings.LastIndex(name, "-"); at > 0 {
				name = name[:at]
			}
			for pair := range slices.Chunk(words[2:], 2) {
				value, err := strconv.ParseFloat(pair[0], 64)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", line, err)
				}
				key := folder + " " + name + " " + pair[1]
				runs[key] = append(runs[key], value)
			}
		}
	}
	all := map[string]figure{}
	for key, values := range runs {
		slices.Sort(values)
		n := len(values)
		all[key] = figure{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
	}
	return all, nil
}

// benchmarksByFolder returns the names of the benchmarks in plots, by the folder of their
// package.
func benchmarksByFolder() map[string][]string {
	all := map[string][]string{}
	for _, p := range plots {
		for _, panel := range p.panels {
			for _, b := range panel.bars {
				for _, key := range b.figures {
					words := strings.Fields(key)
					name, _, _ := strings.Cut(words[1], "/")
					if !slices.Contains(all[words[0]], name) {
						all[words[0]] = append(all[words[0]], name)
					}
				}
			}
		}
	}
	return all
}

// sortedFolders returns the packages of these benchmarks in order.
func sortedFolders(all map[string][]string) []string {
	return slices.SortedFunc(maps.Keys(all), cmp.Compare[string])
}
