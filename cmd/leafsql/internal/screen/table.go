package screen

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/samber/lo"
)

// gap is the number of columns between two columns of a table.
const gap = 2

// Table writes rows in aligned columns with their translated names. The columns named in numbers are aligned to the right.
// On a terminal a table that is too wide gets cells of several lines.
func (s *Screen) Table(names []string, rows [][]string, numbers ...string) {
	table := [][]string{make([]string, len(names))}
	for i, name := range names {
		table[0][i] = s.Texts.Text(name)
	}
	for _, row := range rows {
		clean := make([]string, len(row))
		for i, cell := range row {
			clean[i] = ReplaceControl(cell)
		}
		table = append(table, clean)
	}
	widths := make([]int, len(names))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	if s.Width != nil {
		narrow(table, widths, s.Width()-gap*(len(names)-1))
	}
	for n, row := range table {
		var text strings.Builder
		for line := 0; ; line++ {
			cells, has := make([]string, len(row)), false
			for i, cell := range row {
				lines := wrapCell(cell, widths[i])
				if line < len(lines) {
					cells[i], has = lines[line], true
				}
				spaces := strings.Repeat(" ", widths[i]-uniseg.StringWidth(cells[i]))
				if slices.Contains(numbers, names[i]) {
					cells[i] = spaces + cells[i]
				} else {
					cells[i] += spaces
				}
			}
			if !has {
				break
			}
			text.WriteString(strings.TrimRight(strings.Join(cells, strings.Repeat(" ", gap)), " ") + "\n")
		}
		if n == 0 {
			s.print(s.paint(Bold, text.String()))
		} else {
			s.print(text.String())
		}
	}
}

// narrow reduces the widths of columns until their sum is at most total: first those with cells of several words,
// then also the widest of the others.
func narrow(table [][]string, widths []int, total int) {
	longest := make([]int, len(widths)) // the longest words of each column
	for _, row := range table {
		for i, cell := range row {
			for _, word := range words(cell) {
				longest[i] = max(longest[i], uniseg.StringWidth(strings.TrimRight(word, " ")))
			}
		}
	}
	for lo.Sum(widths) > total {
		widest, splitsWord := -1, true
		for i, width := range widths {
			splits := width <= longest[i]
			if width > 2 && (widest < 0 || splitsWord && !splits || splits == splitsWord && width > widths[widest]) {
				widest, splitsWord = i, splits
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}
