package driver

import (
	"regexp"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

const sendDDLFirst = "send the CREATE, ALTER or DROP by itself, before the INSERT"

// ddl finds statements that change tables, up to their ends. A name in a
// string may be taken for one: that costs a refusal, or a look at the catalog.
var ddl = regexp.MustCompile(`(?is)(?:^|;)\s*(?:create|alter|drop|rename)\s[^;]*`)

// isDDL tells texts that may change a table's columns. Others' are found when
// the view ages, or by the errors they lead to.
func isDDL(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	word, _, _ := strings.Cut(text[:min(len(text), 8)], " ")
	switch strings.ToUpper(word) {
	case "CREATE", "ALTER", "DROP", "RENAME":
		return true
	}
	return len(text) <= maxMemo && strings.Contains(text, ";") && ddl.MatchString(text)
}

// missingTable is the name in the server's "Table 'db.t' doesn't exist".
func missingTable(err error) string {
	_, name, _ := strings.Cut(serverMessage(err), "'")
	name, _, _ = strings.Cut(name, "'")
	return name
}

// changedBefore gives the table that a text both changes and fills by the
// order of its columns, nil if there is none: that INSERT was planned on the
// columns from before.
func changedBefore(text string, p *insert.Plan) *table {
	if len(p.Inserts) == 0 || !isDDL(text) {
		return nil
	}
	for _, change := range ddl.FindAllString(text, -1) {
		change = strings.ToLower(change)
		for i := range p.Inserts {
			// Wraps: the text is not the user's, as columns or guards were put in.
			if in := &p.Inserts[i]; in.Wraps && strings.Contains(change, strings.ToLower(in.Table.Name)) {
				return in.Table.Ref.(*table)
			}
		}
	}
	return nil
}
