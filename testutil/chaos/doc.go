// Package chaos contains two tests. In [TestStormChaos], processes insert rows with snowflakes as ids. Their
// worker ids are from real registries (Nacos, MariaDB, Redis, ZooKeeper, etcd). Meanwhile
// the servers are killed, cut off, slowed down, set back to an older copy, wiped, or failed
// over with a loss of their last writes, and the processes are killed or
// stopped for longer than their lease. No id may be stored twice.
//
// In [TestStormProxy], programs in PHP, Python, Java, Node and Go insert rows through
// two proxies, while the proxies, the server and the programs are killed. No id may be
// stored twice, no acknowledged row may be missing, and each row has to have
// the id that its program received.
//
//	make chaos                              # 16 processes, 200,000 rows each, every registry
//	make storm-proxy                        # 16 programs, 1,000,000 rows on each server
//	go test -C testutil/chaos -tags storm  # the quick ones, of make storm
//
// The table has no unique key on the id, so the database accepts duplicates, and the tests
// query it for duplicates at the end. Leases of worker ids are short (30 s instead of 60 s) and there are few
// worker ids (32 instead of 1024), so worker ids change hands often.
//
// These are tests, not programs, because the helper packages for servers are made for tests:
// they clean up and keep the logs of a failed run. A missing row is an error only if
// it was acknowledged. The tests cannot set a machine's clock; the simulation in
// package worker can.
package chaos
