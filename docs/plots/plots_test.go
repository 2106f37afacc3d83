package main

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPicturesMatchFigures: the pictures match the figures, are well-formed, and are on their page.
func TestPicturesMatchFigures(t *testing.T) {
	checkPictures(t, plots, "figures.txt", "../benchmarks.md")
	checkPictures(t, fleetPlots, "fleet.txt", "../scale.md")
}

func checkPictures(t *testing.T, plots []plot, figures, pageFile string) {
	t.Helper()
	all, page := read(t, figures), content(t, pageFile)
	for _, p := range plots {
		picture, err := p.draw(all)
		if err != nil {
			t.Fatal(err)
		}
		file := p.name + ".svg"
		if content(t, file) != picture {
			t.Errorf("%s differs from the plot of %s, want it equal; run make plots", file, figures)
		}
		for parts := xml.NewDecoder(strings.NewReader(picture)); ; {
			if _, err := parts.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		if !strings.Contains(page, "](plots/"+file+")") {
			t.Errorf("%s does not show %s, want it shown", pageFile, file)
		}
		if _, err := p.draw(nil); err == nil {
			t.Errorf("drawing %s without figures succeeded, want an error", file)
		}
	}
}

// TestBenchmarksOfFiguresExist: the benchmarks of make figures exist.
func TestBenchmarksOfFiguresExist(t *testing.T) {
	for folder, names := range benchmarksByFolder() {
		files, _ := filepath.Glob(filepath.Join("..", "..", folder, "*_test.go"))
		var source string
		for _, file := range files {
			source += content(t, file)
		}
		for _, name := range names {
			if !strings.Contains(source, "\nfunc "+name+"(b *testing.B)") {
				t.Errorf("%s is not declared in %s, want a declared benchmark", name, folder)
			}
		}
	}
}

func TestFiguresAreParsed(t *testing.T) {
	all, err := parseFigures(`goos: linux
pkg: github.com/leafsql/leafsql/driver
BenchmarkX/a-2   100   30 ns/op   1 allocs/op
BenchmarkX/a-2   100   10 ns/op   1 allocs/op
BenchmarkX/a-2   100   12 ns/op   1 allocs/op
PASS
pkg: github.com/leafsql/leafsql/idgen
BenchmarkX/a     1   5 ns/op
BenchmarkX/a     1   8 ns/op
`)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]figure{
		"driver BenchmarkX/a ns/op":     {12, 10, 30},
		"driver BenchmarkX/a allocs/op": {1, 1, 1},
		"idgen BenchmarkX/a ns/op":      {6.5, 5, 8},
	} {
		if all[key] != want {
			t.Errorf("%s: %v, want %v", key, all[key], want)
		}
	}
	if len(all) != 3 {
		t.Errorf("figures = %v, want 3", all)
	}
	for f, want := range map[float64]string{0.84: "0.8", 7: "7.0", 36.4: "36", 189: "189", 27123: "27,100", 1234567: "1,230,000"} {
		if got := formatNumber(f); got != want {
			t.Errorf("%v is written %s, want %s", f, got, want)
		}
	}
}

func read(t *testing.T, file string) map[string]figure {
	t.Helper()
	all, err := parseFigures(content(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
