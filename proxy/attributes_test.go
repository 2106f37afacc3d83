package proxy_test

import (
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestQueryAttributesReachTheServer: MySQL reads a statement's attributes by their names, whether the statement is relayed or
// filled, a text, a part of one or prepared. The next statement has none of them.
func TestQueryAttributesReachTheServer(t *testing.T) {
	mysqltest.TargetOf(t, mysqltest.MySQL)
	p := newTestDatabase(t, mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MySQL}).Target())
	p.exec("INSTALL COMPONENT 'file://component_query_attributes'")
	named := func(name string, value proxytest.Param) proxytest.Param {
		value.Name = name
		return value
	}
	trace, number, null := named("trace", proxytest.String("it's a \\ trace")), named("number", proxytest.Int(-7)), named("null", proxytest.Null())
	const (
		read = "mysql_query_attribute_string('trace'), mysql_query_attribute_string('number'), mysql_query_attribute_string('null'), mysql_query_attribute_string('')"
		one  = "mysql_query_attribute_string('trace')"
	)
	for way, capabilities := range map[string]uint64{"EOF": 0, "no EOF": proxytest.DeprecateEOF} {
		t.Run(way, func(t *testing.T) {
			p := *p
			p.t = t
			o := p.rootOptions()
			o.Capabilities = proxytest.Common | proxytest.MultiStatements | proxytest.QueryAttributes | capabilities
			p.newFillTwin(o, filledItems...).Run(t, func(c *proxytest.Client) {
				all := []proxytest.Param{trace, number, null, named("", proxytest.String("nameless"))}
				c.QueryWith("SELECT "+read, all...)
				c.Query("SELECT " + read)
				c.QueryWith("INSERT INTO items (name, n) VALUES ("+one+", 1)", all...)
				c.Query("INSERT INTO items (name, n) VALUES (" + one + ", 2)")
				c.QueryWith("INSERT INTO items (name, n) VALUES ("+one+", 3), ('it\\'s', 4)", trace)
				c.QueryWith("INSERT INTO items (name, n) VALUES ("+one+", 5); SELECT "+read+"; INSERT INTO items (name, n) VALUES ("+one+", 6)", all...)
				c.QueryWith("INSERT INTO items (name, n) SELECT "+one+", n FROM source WHERE n = 50", all...)
				c.QueryWith("INSERT INTO items (name, n) SELECT CONCAT(name, "+one+"), n FROM source WHERE n > 50 ORDER BY n", all...)
				c.QueryWith("INSERT INTO items (name, n) VALUES ('taken', 1)", all...)
				c.QueryWith("INSERT INTO items (missing) VALUES (1)", all...)

				for _, text := range []string{"SELECT ?, " + read, "INSERT INTO items (n, name) VALUES (?, " + one + ")"} {
					s := c.Prepare(text)
					n := int64(10)
					next := func() proxytest.Param { n++; return proxytest.Int(n) }
					s.ExecuteAs(proxytest.CountAvailable, true, append([]proxytest.Param{next()}, all...)...)
					s.Execute(next())
					s.ExecuteAs(proxytest.CountAvailable, true, next(), trace)
					s.ExecuteAs(proxytest.CountAvailable, false, next(), trace)
					s.ExecuteAs(proxytest.CountAvailable, true, next())
				}
				none := c.Prepare("INSERT INTO items (name) VALUES (" + one + ")")
				none.ExecuteAs(proxytest.CountAvailable, true, all...)
				none.Execute()
				key := c.Prepare("INSERT INTO items (id, name) VALUES (?, " + one + ")")
				key.ExecuteAs(proxytest.CountAvailable, true, proxytest.Null(), trace)
				key.ExecuteAs(proxytest.CountAvailable, true, proxytest.Int(9), trace)
				c.Query("SELECT id, name, n FROM items ORDER BY id")
			})
		})
	}
}
