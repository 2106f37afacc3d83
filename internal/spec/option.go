package spec

import (
	"fmt"
	"strings"
)

// An OptionError says what is wrong with an option of a source.
type OptionError struct {
	Source string // as the DSN's parameters write it: Nacos in leafNacosGroup
	Option string // Group
	Reason string
	Fix    string   // "" if the options that are known are the hint
	Known  []string // Group and others
}

// Param returns the DSN's parameter.
func (e *OptionError) Param() string { return "leaf" + e.Source + e.Option }

// Hint returns what to write instead.
func (e *OptionError) Hint() string {
	switch {
	case e.Fix != "":
		return e.Fix
	case len(e.Known) == 0:
		return "this source takes none"
	}
	prefix := "leaf" + e.Source
	return "known are " + prefix + strings.Join(e.Known, ", "+prefix)
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("leafsql: %s: %s; %s", e.Param(), e.Reason, e.Hint())
}
