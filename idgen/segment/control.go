package segment

import (
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/internal/control"
)

func init() {
	control.Of = func(g idgen.Generator) control.Control { return (*controlled)(g.(*Generator)) }
}

// controlled is a Generator with the methods for package driver. It implements control.Control.
type controlled Generator
