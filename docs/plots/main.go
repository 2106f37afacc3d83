// Command plots draws the plots of docs/benchmarks.md and docs/scale.md from docs/plots/figures.txt and fleet.txt, which have the
// format of go test -bench. make fleet writes fleet.txt. With -measure it runs these benchmarks first, and writes figures.txt again. make plots and make figures run it.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const module = "github.com/leafsql/leafsql/"

func main() {
	measured := flag.Int("measure", 0, "run the benchmarks so many times first")
	flag.Parse()
	if err := run(*measured); err != nil {
		fmt.Fprintln(os.Stderr, "plots:", err)
		os.Exit(1)
	}
}

// run draws the plots. The current folder has to be docs/plots.
func run(measured int) error {
	if measured > 0 {
		text, err := measure(measured)
		if err == nil {
			err = os.WriteFile("figures.txt", []byte(text), 0o644)
		}
		if err != nil {
			return err
		}
	}
	for file, plots := range map[string][]plot{"figures.txt": plots, "fleet.txt": fleetPlots} {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all, err := parseFigures(string(text))
		if err != nil {
			return err
		}
		for _, p := range plots {
			picture, err := p.draw(all)
			if err == nil {
				err = os.WriteFile(p.name+".svg", []byte(picture), 0o644)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs the benchmarks, one package after the other.
func measure(times int) (string, error) {
	var text strings.Builder
	all := benchmarksByFolder()
	for _, folder := range sortedFolders(all) {
		fmt.Println(folder)
		test := exec.Command("go", "test", "-C", filepath.Join("..", "..", folder), "-timeout=0", "-run=^$", "-bench=^("+strings.Join(all[folder], "|")+")$",
			fmt.Sprintf("-count=%d", times), ".")
		test.Stderr = os.Stderr
		out, err := test.Output()
		if err != nil {
			return "", fmt.Errorf("%s: %w\n%s", folder, err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "pkg:") || strings.HasPrefix(line, "Benchmark") {
				text.WriteString(line)
			}
		}
	}
	return text.String(), nil
}
