// Package schema is the shop's, as ent describes it.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/dialect/entsql"
	"entgo.io/ent/schema/field"
)

// Customer is the table customers.
type Customer struct {
	ent.Schema
}

// Fields are its columns. Incremental(false) keeps AUTO_INCREMENT out of what
// client.Schema.Create writes.
func (Customer) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id").Annotations(entsql.Annotation{Incremental: new(bool)}),
		field.String("email").MaxLen(100).Unique(),
		field.String("name").MaxLen(100),
	}
}
