// Package chaos is two tests. In [TestStormChaos], processes insert rows whose ids are snowflakes with
// worker ids from real registries (Nacos, MariaDB, Redis, ZooKeeper, etcd), while
// the servers are killed, cut off, slowed down, set back to an older copy, failed
// over with their last writes lost, or wiped, and the processes are killed and
// stopped for longer than their lease. No id may be there twice.
//
// In [TestStormProxy], programs in PHP, Python, Java, Node and Go insert rows through
// two proxies, while these, the server and the programs are killed. No id may be
// there twice, no row that was acknowledged may be missing, and each has to have
// the id that its program was told.
//
//	make chaos                              # 16 processes, 200,000 rows each, every registry
//	make storm-proxy                        # 16 programs, 1,000,000 rows on each server
//	go test -C testutil/chaos -tags storm  # the quick ones, of make storm
//
// The rows go into a table without a unique key on the id, so that the database
// would take a duplicate, and is asked for them at the end. Leases of worker ids are short
// (30 s instead of 60 s) and worker ids few (32 instead of 1024), so that they
// change hands often.
//
// They are tests and not programs because the servers' helpers belong to tests:
// they clean up behind them and keep the logs of a run that failed. They do not
// look for lost rows beyond those that were acknowledged, and cannot set a
// clock; the simulation in package worker does that.
package chaos
