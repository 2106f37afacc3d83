package spec

import (
	"fmt"
	"strings"
)

// An OptionError is a mistake in an option of a source.
type OptionError struct {
	Source string // as in the DSN's parameters: Nacos in leafNacosGroup
	Option string // Group
	Reason string
	Fix    string   // the hint; if it is "", the hint lists Known
	Known  []string // known options, such as Group
}

// Param returns the DSN's parameter.
func (e *OptionError) Param() string { return "leaf" + e.Source + e.Option }

// Hint returns the hint for the error message.
func (e *OptionError) Hint() string {
	switch {
	case e.Fix != "":
		return e.Fix
	case len(e.Known) == 0:
		return "this source has no parameters"
	}
	prefix := "leaf" + e.Source
	return "known are " + prefix + strings.Join(e.Known, ", "+prefix)
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("leafsql: %s: %s; %s", e.Param(), e.Reason, e.Hint())
}
