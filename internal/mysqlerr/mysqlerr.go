// Package mysqlerr lists the errors of MySQL and MariaDB servers after which a statement may be retried.
//
//	if slices.Contains(mysqlerr.Conflicts, number) { … } // the same statement once more
//
// It contains only error numbers, and imports no driver.
package mysqlerr

import "slices"

// LostRace lists the errors of a statement that had no effect because another session or
// another member of the cluster wrote first.
var LostRace = []uint16{
	1020, // the record has changed since it was read (MariaDB's innodb_snapshot_isolation)
	1213, // deadlock
	3101, // a plugin, such as Group Replication, rolled back
}

// Conflicts lists the errors in LostRace and the other errors of statements that had no effect
// because of other sessions or members. Such a statement may be sent again.
var Conflicts = slices.Concat(LostRace, []uint16{
	1180, // an error during COMMIT
	1205, // lock wait timeout
})

// NotWritable lists the errors of a server that was demoted or has left its cluster. A new
// connection may lead to another server.
var NotWritable = []uint16{
	1047, // a Galera node outside the primary component
	1290, // read_only
	1792, // a read-only transaction
	1836, // read-only mode
	3100, // a Group Replication member outside the group
}
