package main

import (
	"bytes"
	"fmt"
	"html"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	cellWidth  = 7.83 // width of a character at 13 px
	cellHeight = 18
	margin     = 16
)

// styles has the class of each style.
var styles = map[int]string{1: "b", 2: "d", 31: "r", 32: "g"}

// drawSVG returns a picture of the lines that repeats after a period.
func drawSVG(lines []line, period time.Duration, title string) []byte {
	rows := 0
	for _, l := range lines {
		rows = max(rows, l.row+1)
	}
	var out bytes.Buffer
	width, height := columns*8+2*margin, rows*cellHeight+2*margin
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img"><title>%s</title><style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace;fill:#e6edf3;white-space:pre;animation:%.2fs step-end infinite}
.b{font-weight:bold;fill:#fff}.d{fill:#8b949e}.r{fill:#ff7b72}.g{fill:#56d364}
`, width, height, width, height, html.EscapeString(title), period.Seconds())
	class := map[string]string{}
	percent := func(d time.Duration) string { return fmt.Sprintf("%.2f%%", 100*d.Seconds()/period.Seconds()) }
	var body strings.Builder
	for _, l := range lines {
		if strings.TrimSpace(plain(l.spans)) == "" {
			continue
		}
		frames := "0%{visibility:hidden}" + percent(l.from) + "{visibility:visible}"
		if l.to > 0 {
			frames += percent(l.to) + "{visibility:hidden}"
		}
		name, ok := class[frames]
		if !ok {
			name = fmt.Sprintf("k%d", len(class))
			class[frames] = name
			fmt.Fprintf(&out, "@keyframes %s{%s}.%[1]s{animation-name:%[1]s}\n", name, frames)
		}
		if l.to > 0 {
			name += " t"
		}
		fmt.Fprintf(&body, `<text class="%s" y="%d">`, name, margin+l.row*cellHeight+13)
		column := 0
		for _, s := range l.spans {
			text := strings.TrimLeft(s.text, " ")
			at := column + utf8.RuneCountInString(s.text) - utf8.RuneCountInString(text)
			column += utf8.RuneCountInString(s.text)
			if text = strings.TrimRight(text, " "); text == "" {
				continue
			}
			style := ""
			if styles[s.style] != "" {
				style = fmt.Sprintf(` class="%s"`, styles[s.style])
			}
			fmt.Fprintf(&body, `<tspan x="%.1f"%s>%s</tspan>`, margin+float64(at)*cellWidth, style, html.EscapeString(text))
		}
		body.WriteString("</text>\n")
	}
	fmt.Fprintf(&out, "@media(prefers-reduced-motion:reduce){text{animation:none}.t{visibility:hidden}}\n"+
		"</style><rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#0d1117\"/>\n%s</svg>\n", body.String())
	return out.Bytes()
}
