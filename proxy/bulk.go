package proxy

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strconv"

	"github.com/leafsql/leafsql/internal/wire"
)

// serveBulk serves MariaDB's COM_STMT_BULK_EXECUTE of a filled statement, which executes it for many rows. The server
// also receives one command, with the ids among the arguments of its rows. A bulk of a single row is executed like an
// ordinary statement, since the answer then has more information about the key.
func (s *session) serveBulk(st *preparedStmt, p []byte) error {
	s.dropLongValues(st)
	rows, err := wire.ParseBulk(p, st.params, st.types)
	if err != nil || rows.Rows == 0 {
		return s.client.sendError(1210, "HY000", "Incorrect arguments to mysqld_stmt_bulk_execute")
	}
	st.types = rows.Types
	if one := rows; rows.Rows == 1 {
		args := one.Next()
		if !slices.ContainsFunc(args, func(p wire.Param) bool { return p.Indicator > 1 }) { // an ordinary execution cannot request a column's default
			for i := range args {
				args[i].Null = args[i].Indicator == 1
			}
			return s.runFilled(st, args)
		}
	}
	s.setBackslashEscapes()
	keys, last := rows, -1
	var args []wire.Param
	b, err := st.prepared.StartBulk(&s.server.waits, rows.Rows, s.server.maxPacket-len(p), func(row, i int) driver.Value {
		for ; last < row; last++ {
			args = keys.Next()
		}
		return args[i].KeyValue()
	})
	switch {
	case err != nil:
		return s.sendFailure(err)
	case b == nil: // the types are sent again: the server does not have them if the client sent them with a filled execution
		if err := s.server.sendCommand(rows.Append(nil)); err != nil {
			return s.sendFailure(err)
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
	inner := b.Stmt().(*innerStatement)
	command := wire.AppendBulk(make([]byte, 0, len(p)+rows.Rows*len("\x00\x131234567890123456789")), inner.prepared.StmtID, types)
	for range rows.Rows {
		row := rows.Next()
		for _, arg := range b.Args() {
			id, ok := b.NextID(arg)
			switch {
			case ok:
				command = wire.AppendBulkValue(command, keyParam(id))
			case b.IsKey(arg):
				command = wire.AppendBulkValue(command, keyParam(row[arg].KeyValue()))
			default:
				command = wire.AppendBulkValue(command, row[arg])
			}
		}
	}
	r, err := s.server.runCommand(command, head)
	a, err := b.Finish(&s.server.waits, r, err)
	_, err = s.sendResult(a, err, false)
	return err
}

// keyParam returns a key as text, so that generated ids and keys of the client have the same type.
func keyParam(key any) wire.Param {
	switch key := key.(type) {
	case []byte:
		return wire.StringParam(key)
	case float64:
		return wire.StringParam(strconv.AppendFloat(nil, key, 'f', -1, 64))
	}
	return wire.StringParam(fmt.Append(nil, key))
}
