package screen

import (
	"iter"
	"strings"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// wrapText breaks lines that are wider than width between words, and indents the continuation like the beginning of
// the line.
func wrapText(text string, width int) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		content, end := strings.CutSuffix(line, "\n")
		indent, rest := cutIndent(content)
		b.WriteString(indent + strings.Join(wrapLine(rest, width-len(indent), "", anywhere), "\n"+indent))
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// cutIndent returns the white space at the beginning of a line as spaces, with tab stops at each 8 columns.
func cutIndent(line string) (indent, rest string) {
	rest = strings.TrimLeft(line, " \t")
	for _, c := range line[:len(line)-len(rest)] {
		indent += " "
		for c == '\t' && len(indent)%8 != 0 {
			indent += " "
		}
	}
	return indent, rest
}

// wrapLine returns the lines into which a text is broken, without spaces at their ends. It breaks where canBreak returns
// true for the text before: after a space or one of the characters in ends, and next to a Chinese character. So a longer
// word makes a wider line.
func wrapLine(text string, width int, ends string, canBreak func(before string) bool) (lines []string) {
	begin, last := 0, 0 // the current line, and the last place at which it can be broken
	for i, word := range words(text, ends) {
		end := i + len(word)
		if uniseg.StringWidth(strings.TrimRight(text[begin:end], " ")) > width && last > begin {
			lines = append(lines, strings.TrimRight(text[begin:last], " "))
			begin = last
		}
		if canBreak(text[:end]) {
			last = end
		}
	}
	return append(lines, strings.TrimRight(text[begin:], " "))
}

func anywhere(string) bool { return true }

// inNames contains characters after which a cell of a table can be broken, so that long names need few columns.
const inNames = "._"

// words yields the parts of a text between which a line can be broken, with their offsets: after spaces and the
// characters in ends, and next to Chinese characters if Unicode's rules allow it.
func words(text, ends string) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		begin, end, state := 0, 0, -1
		for rest := text; rest != ""; {
			var segment string
			segment, rest, _, state = uniseg.FirstLineSegmentInString(rest, state)
			end += len(segment)
			before, _ := utf8.DecodeLastRuneInString(segment)
			after, _ := utf8.DecodeRuneInString(rest)
			for {
				i := strings.IndexAny(text[begin:end-1], ends)
				if i < 0 {
					break
				}
				if !yield(begin, text[begin:begin+i+1]) {
					return
				}
				begin += i + 1
			}
			if rest != "" && before != ' ' && !isWide(before) && !isWide(after) {
				continue // such as after a hyphen: -dsn stays together
			}
			if !yield(begin, text[begin:end]) {
				return
			}
			begin = end
		}
	}
}

func isWide(r rune) bool { return uniseg.StringWidth(string(r)) == 2 }

// outsideQuotes reports whether a text of SQL, which begins a statement, ends outside of quotes.
func outsideQuotes(sql string) bool {
	var quote byte
	for i := 0; i < len(sql); i++ {
		switch c := sql[i]; {
		case quote == 0 && (c == '\'' || c == '"' || c == '`'):
			quote = c
		case c == '\\' && quote != '`':
			i++
		case c == quote:
			quote = 0
		}
	}
	return quote == 0
}

// wrapCell returns the lines of a cell of a table. It also breaks words that are wider than the column.
func wrapCell(text string, width int) (lines []string) {
	for _, line := range wrapLine(text, width, inNames, anywhere) {
		begin := 0
		for i, r := range line {
			if uniseg.StringWidth(line[begin:i+utf8.RuneLen(r)]) > width && i > begin {
				lines = append(lines, line[begin:i])
				begin = i
			}
		}
		lines = append(lines, line[begin:])
	}
	return lines
}
