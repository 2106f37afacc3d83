package pageextra

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
)

// AcceptsGzip reports whether a client accepts gzip.
func AcceptsGzip(r *http.Request) bool {
	for coding, weight := range accepted(r, "Accept-Encoding") {
		if coding == "gzip" {
			return weight > 0
		}
	}
	return false
}

// PrefersChinese reports whether a browser prefers Chinese to English.
func PrefersChinese(r *http.Request) bool {
	var zh, en float64
	for language, weight := range accepted(r, "Accept-Language") {
		switch language, _, _ = strings.Cut(language, "-"); {
		case language == "zh" && weight > en: // the first of two languages with equal weights is preferred
			zh = max(zh, weight)
		case language == "en":
			en = max(en, weight)
		}
	}
	return zh > 0 && zh >= en
}

// accepted returns the values of an Accept header, in lower case, each with its weight.
func accepted(r *http.Request, header string) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for part := range strings.SplitSeq(strings.Join(r.Header.Values(header), ","), ",") {
			name, text, weighed := strings.Cut(strings.ReplaceAll(strings.ToLower(part), " ", ""), ";")
			weight := 1.0
			if weighed {
				weight, _ = strconv.ParseFloat(strings.TrimPrefix(text, "q="), 64) // 0 if it cannot be parsed
			}
			if !yield(name, weight) {
				return
			}
		}
	}
}
