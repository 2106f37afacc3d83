package main

import (
	"cmp"
	"strings"

	"github.com/leafsql/leafsql/internal/chinese"
)

// texts are Chinese where the locale asks for it, by the first of these variables that is set, and where the
// terminal shows it.
func texts(getenv func(string) string) chinese.Texts {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_MESSAGES"), getenv("LANG")))
	language, charset, _ := strings.Cut(locale, ".")
	if strings.HasPrefix(language+"_", "zh_") && strings.HasPrefix(strings.ReplaceAll(charset, "-", ""), "utf8") {
		return inChinese
	}
	return nil
}
