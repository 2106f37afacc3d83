// Package chaos is a test: processes insert rows whose ids are snowflakes with
// worker ids from real registries (Nacos, MariaDB, Redis, ZooKeeper, etcd), while
// the servers are killed, cut off, slowed down, set back to an older copy, failed
// over with their last writes lost, or wiped, and the processes are killed and
// stopped for longer than their lease. No id may be there twice.
//
//	make chaos                              # 16 processes, 200,000 rows each, every registry
//	go test -C testutil/chaos -tags storm  # the quick one, of make storm
//
// The rows go into a table without any key on the id, so that the database
// would take a duplicate, and is asked for them at the end. Leases are short
// (30 s instead of 60 s) and worker ids few (32 instead of 1024), so that they
// change hands often.
//
// It is a test and not a program because the servers' helpers belong to tests:
// they clean up behind them and keep the logs of a run that failed. It does not
// look for lost rows beyond those that were acknowledged, and cannot set a
// clock; the simulation in package worker does that.
package chaos
