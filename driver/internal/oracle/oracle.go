// Package oracle tests the scanner and the reader against a real parser, TiDB's. It is a separate
// module, so that applications do not depend on the grammar. It has only tests.
package oracle
