package screen

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/samber/lo"
)

// gap is the number of columns between two columns of a table.
const gap = 2

// minCell is the minimum width of a column.
const minCell = 2

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
	isNumber := make([]bool, len(names))
	widths := make([]int, len(names))
	for i := range names {
		isNumber[i] = slices.Contains(numbers, names[i])
		for _, row := range table {
			widths[i] = max(widths[i], uniseg.StringWidth(row[i]))
		}
	}
	if s.Width != nil {
		narrow(table, widths, isNumber, s.Width()-gap*(len(names)-1))
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
				spaces := strings.Repeat(" ", max(widths[i]-uniseg.StringWidth(cells[i]), 0)) // a character can be wider than the column
				if isNumber[i] {
					cells[i] = spaces + cells[i]
				} else {
					cells[i] += spaces
				}
			}
			if !has {
				break
			}
			cells[0] = strings.TrimRight(strings.Join(cells, strings.Repeat(" ", gap)), " ")
			if n == 0 {
				cells[0] = s.paint(Bold, cells[0])
			}
			text.WriteString(cells[0] + "\n")
		}
		s.print(text.String())
	}
}

// narrow reduces the widths of columns until their sum is at most total. It first breaks cells between words, then also
// names, and at last words. It never breaks numbers.
func narrow(table [][]string, widths []int, isNumber []bool, total int) {
	for _, parts := range []func(cell string) []string{
		func(cell string) []string { return wrapLine(cell, 1, "", anywhere) },
		func(cell string) []string { return wrapLine(cell, 1, inNames, anywhere) },
		func(string) []string { return nil },
	} {
		for lo.Sum(widths) > total {
			widest := -1
			for i, width := range widths {
				if width > minWidthOf(table, i, isNumber[i], parts) && (widest < 0 || width > widths[widest]) {
					widest = i
				}
			}
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
}

// minWidthOf returns the minimum width of a column whose cells can be broken into parts. Its name is broken at spaces.
func minWidthOf(table [][]string, column int, isNumber bool, parts func(cell string) []string) int {
	minimum := minCell
	for n, row := range table {
		all := []string{row[column]}
		switch {
		case n == 0:
			all = strings.Fields(row[column])
		case !isNumber:
			all = parts(row[column])
		}
		for _, part := range all {
			minimum = max(minimum, uniseg.StringWidth(part))
		}
	}
	return minimum
}
