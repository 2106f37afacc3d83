package proxy

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"

	"github.com/leafsql/leafsql/internal/wire"
)

// bulk serves MariaDB's COM_STMT_BULK_EXECUTE of a filled statement. It stays one command, with the ids among
// the arguments of its rows. A bulk of a single row runs like any other execution. Its answer has more
// information about the key.
func (s *session) bulk(st *preparedStmt, p []byte) error {
	s.dropLong(st)
	rows, err := wire.ParseBulk(p, st.params, st.types)
	if err != nil || rows.Rows == 0 {
		return s.client.fail(1210, "HY000", "Incorrect arguments to mysqld_stmt_bulk_execute")
	}
	st.types = rows.Types
	if one := rows; rows.Rows == 1 {
		args := one.Next()
		if !slices.ContainsFunc(args, func(p wire.Param) bool { return p.Indicator > 1 }) { // a default is not an argument
			for i := range args {
				args[i].Null = args[i].Indicator == 1
			}
			return s.runFilled(st, args)
		}
	}
	ctx := s.bound()
	defer ctx.end()
	s.tellBackslashes()
	keys, last := rows, -1
	var args []wire.Param
	b, err := st.leaf.StartBulk(ctx, rows.Rows, s.server.maxPacket-len(p), func(row, i int) driver.Value {
		for ; last < row; last++ {
			args = keys.Next()
		}
		return args[i].KeyValue()
	})
	switch {
	case err != nil:
		return s.refuse(err)
	case b == nil: // sent with its types: the server may not have them, if an earlier execution with types was filled
		if err := s.server.start(rows.Append(nil)); err != nil {
			return s.refuse(err)
		}
		s.proxy.counts.passed.Add(1)
		_, err := s.server.relay(&answer{})
		return err
	}

	types := make([]wire.Param, len(b.Args()))
	for i, arg := range b.Args() {
		if types[i].Type = wire.TypeString; !b.IsKey(arg) {
			types[i] = rows.Types[arg]
		}
	}
	inner := b.Stmt().(*statement)
	command := wire.AppendBulk(make([]byte, 0, len(p)+rows.Rows*len("\x00\x131234567890123456789")), inner.ok.ID, types)
	for range rows.Rows {
		row := rows.Next()
		for _, arg := range b.Args() {
			id, ok := b.NextID(arg)
			switch {
			case ok:
				command = wire.AppendBulkValue(command, keyText(id))
			case b.IsKey(arg):
				command = wire.AppendBulkValue(command, keyText(row[arg].KeyValue()))
			default:
				command = wire.AppendBulkValue(command, row[arg])
			}
		}
	}
	r, err := s.server.run(command, head)
	a, err := b.Finish(ctx, r, err)
	_, err = s.tell(a, err, false)
	return err
}

// keyText returns a key as text, so that generated ids and keys of the client have the same type.
func keyText(key any) wire.Param {
	switch key := key.(type) {
	case []byte:
		return wire.StringParam(key)
	case float64:
		return wire.StringParam(strconv.AppendFloat(nil, key, 'f', -1, 64))
	}
	return wire.StringParam(fmt.Append(nil, key))
}
