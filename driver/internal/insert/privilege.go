package insert

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

// ProbeText returns an INSERT with VALUES that needs the same privileges on the table as the statement,
// which must have Columns. If filled is set, the INSERT also needs the privileges on the key. Servers
// check these privileges when the INSERT is prepared. With a SELECT instead of VALUES, MariaDB would check the
// columns only when the statement runs.
func (in *Insert) ProbeText(filled bool) string {
	columns, verb, updates := in.Columns, "INSERT", ""
	if filled && !slices.ContainsFunc(columns, func(c string) bool { return strings.EqualFold(c, in.Table.Key) }) {
		columns = append(slices.Clip(columns), in.Table.Key)
	}
	if in.Duplicates == Replace {
		verb = "REPLACE"
	}
	if in.Staging == nil {
		updates = in.Updates
		if key := quote.Name(in.Table.Key); filled && in.Update >= RowUpdate {
			updates += ", " + key + " = " + in.Table.Name.Quoted() + "." + key
		}
	}
	return verb + " INTO " + in.Table.Name.Quoted() + " (" + quote.Names(columns) + ") VALUES (" +
		strings.Join(slices.Repeat([]string{"DEFAULT"}, len(columns)), ", ") + ") " + updates
}

// RefuseKey returns the *Refusal of a statement that the account may run without, but not with,
// the key column. denial is the server's message.
func (in *Insert) RefuseKey(denial string) error {
	key := quote.Name(in.Table.Key)
	grant := "GRANT INSERT (" + key + ")"
	if in.Duplicates >= Update {
		grant += ", SELECT (" + key + "), UPDATE (" + key + ")"
	}
	return in.Table.Refuse("this account has the right to run the statement, but not with the key column in it ("+denial+")",
		grant+" ON "+in.Table.Name.Quoted()+" to it")
}
