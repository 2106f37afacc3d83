package main

import (
	"cmp"
	"strings"

	"github.com/leafsql/leafsql/internal/chinese"
)

// localeTexts returns the Chinese texts if the locale, in the first of these variables that is set, is Chinese
// and the terminal can display it.
func localeTexts(getenv func(string) string) chinese.Texts {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")))
	language, charset, _ := strings.Cut(locale, ".")
	if strings.HasPrefix(language+"_", "zh_") && strings.HasPrefix(strings.ReplaceAll(charset, "-", ""), "utf8") {
		return chineseTexts
	}
	return nil
}
