// Package oracle judges the scanner of package insert by a real parser,
// TiDB's. It is a module of its own, so that the grammar is no dependency of
// applications; it holds tests only.
package oracle
