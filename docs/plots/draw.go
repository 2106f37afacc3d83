package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

const (
	width   = 820
	labels  = 250 // left edge of bars
	longest = 400 // length of the longest bar
	line    = 28  // distance from one bar to the next
)

// style has the colours of the drawing in README, for light and for dark pages.
const style = `  <style>
    text { font: 14px -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif; fill: #1f2328 }
    .title { font-weight: 600 }
    .small { font-size: 13px; fill: #57606a }
    .page { fill: #ffffff; stroke: #d0d7de }
    .leaf { fill: #2da44e }
    .other { fill: #afb8c1 }
    .range { stroke: #1f2328; stroke-width: 1.5 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e6edf3 }
      .small { fill: #9da7b3 }
      .page { fill: #0d1117; stroke: #30363d }
      .leaf { fill: #3fb950 }
      .other { fill: #6e7681 }
      .range { stroke: #e6edf3 }
    }
  </style>
`

// draw returns the SVG of the plot. A thin line over a bar goes from the lowest run to the highest
// one.
func (p plot) draw(all map[string]figure) (string, error) {
	var body, said strings.Builder
	y := 34
	for _, panel := range p.panels {
		y += line
		title := panel.title
		if panel.logarithmic {
			title += " (logarithmic scale)"
		}
		writeText(&body, "small", 20, y, title)
		top := 0.0
		sums := make([][]figure, len(panel.bars))
		for i, b := range panel.bars {
			for _, key := range b.figures {
				f, found := all[key]
				if !found {
					return "", fmt.Errorf("no figure %q; run make figures", key)
				}
				sums[i] = append(sums[i], f.toUnit(panel.unit, key))
			}
			top = max(top, sumFigures(sums[i]).highest)
		}
		lengthOf := func(value float64) float64 {
			if panel.logarithmic {
				return math.Log1p(value) / math.Log1p(top) * longest
			}
			return value / top * longest
		}
		for i, b := range panel.bars {
			y += line
			value := barLabel(sums[i], panel.unit)
			writeText(&body, "", 20, y, b.label)
			x := float64(labels)
			for part, f := range sums[i] {
				class := "other"
				if b.ours && part == len(sums[i])-1 {
					class = "leaf"
				}
				length := lengthOf(f.median)
				fmt.Fprintf(&body, "  <rect class=%q x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"16\"/>\n", class, x, y-12, length)
				x += length
			}
			if all := sumFigures(sums[i]); all.lowest < all.highest {
				from, to := labels+lengthOf(all.lowest), labels+lengthOf(all.highest)
				fmt.Fprintf(&body, "  <path class=\"range\" d=\"M%.1f %dH%.1f\"/>\n", from, y-4, to)
				x = max(x, to)
			}
			writeText(&body, "", int(x)+8, y, value)
			fmt.Fprintf(&said, " %s, %s: %s.", panel.title, b.label, value)
		}
		y += 8
	}
	height := y + 16
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="title desc">
  <title id="title">%s</title>
  <desc id="desc">%s</desc>
%s  <rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="8"/>
`, width, height, width, height, html.EscapeString(p.title), html.EscapeString(strings.TrimSpace(said.String())), style, width-1, height-1) +
		fmt.Sprintf("  <text class=\"title\" x=\"20\" y=\"30\">%s</text>\n", html.EscapeString(p.title)) + body.String() + "</svg>\n", nil
}

func writeText(to *strings.Builder, class string, x, y int, label string) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(to, "  <text%s x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(label))
}

// toUnit converts the figure to a panel's unit.
func (f figure) toUnit(unit, key string) figure {
	if unit == "ms" && strings.HasSuffix(key, " ns/op") {
		return figure{f.median / 1e6, f.lowest / 1e6, f.highest / 1e6}
	}
	return f
}

func sumFigures(parts []figure) (all figure) {
	for _, f := range parts {
		all = figure{all.median + f.median, all.lowest + f.lowest, all.highest + f.highest}
	}
	return all
}

// barLabel returns the label of a bar: "189 + 137 ns".
func barLabel(parts []figure, unit string) string {
	var all []string
	for _, f := range parts {
		all = append(all, formatNumber(f.median))
	}
	return strings.TrimSpace(strings.Join(all, " + ") + " " + unit)
}

// formatNumber formats f with one decimal below ten, three significant digits above a thousand, and commas for
// thousands.
func formatNumber(f float64) string {
	if f < 10 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	rest := int(math.Round(f))
	if f >= 1000 {
		scale := math.Pow(10, math.Floor(math.Log10(f))-2)
		rest = int(math.Round(f/scale) * scale)
	}
	digits := strconv.Itoa(rest)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
