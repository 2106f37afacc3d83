// Package pageextra describes the contents that leafsql's commands add to the page of package statuspage.
package pageextra

// An Extra is shown in addition to the ids.
type Extra struct {
	Server string      // name of the server that the ids come from, for people; "" is not shown
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
