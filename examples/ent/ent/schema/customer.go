// Package schema describes the shop's tables for ent.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Customer describes the table customers.
type Customer struct {
	ent.Schema
}

// Fields returns the columns. With Incremental(false), client.Schema.Create
// does not write AUTO_INCREMENT.
func (Customer) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Annotations(entsql.Annotation{Incremental: new(bool)}),
		field.String("email").MaxLen(100).Unique(),
		field.String("name").MaxLen(100),
	}
}
