// Package pageextra describes the contents that leafsql's commands add to the page of package statuspage, and has the style
// and the languages of their pages.
package pageextra

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"

	"github.com/leafsql/leafsql/internal/chinese"
)

// CSS is the style of all pages.
//
//go:embed page.css
var CSS string

// Hash returns the hash of a style or a script, for the header Content-Security-Policy.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Titles contains the Chinese titles of pages.
var Titles = chinese.Texts{
	"Ids over HTTP":      "HTTP 发号服务",
	"leafsql proxy":      "leafsql 代理",
	"Ranges in memory":   "内存中的号段",
	"Rows of leaf_alloc": "leaf_alloc 的行",
	"ranges in memory":   "内存中的号段",
	"rows of leaf_alloc": "leaf_alloc 的行",
	"metrics":            "指标",
}

// An Extra is shown in addition to the ids.
type Extra struct {
	Server string      // name of the server that the ids come from, for people; "" is not shown
	Host   string      // name of the machine, which the title ends with; "" is not shown
	Links  []Link      // links to other pages
	More   func() More // returns further contents of the program; may be nil
}

// A Link is a link from the page to another one.
type Link struct{ Text, Address string }

// More has the further contents of a page. Texts with a Chinese translation are translated.
type More struct {
	Title   string
	Figures []Figure
	Wrong   []string // problems that need attention
}

// A Figure is a number and the text that is shown with it.
type Figure struct {
	Text   string
	Number int64
}
