package segment

import (
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/control"
)

func init() {
	control.Of = func(g idgen.Generator) control.Control { return (*controlled)(g.(*Generator)) }
	control.AllocRowsOf = func(s any) control.AllocRows { return allocRows{s.(*AllocStore)} }
	control.SequenceRowsOf = func(s any) control.Rows { return s.(*sequenceStore) }
}

// controlled is a Generator with the methods for package driver. It implements control.Control.
type controlled Generator

// allocRows is an AllocStore with the methods for leafsql's own packages. It implements control.AllocRows.
type allocRows struct{ *AllocStore }
