//go:build unix

package main

// A capability is a row of the table: a feature of leafsql, and the tests that compare it with the plain driver.
type capability struct {
	what  string
	tests []string // package, a space and a regular expression of tests' names
}

const servertest = "driver/servertest "

// moveShards is a feature with tests that are compiled for TiDB alone. It is not available on other servers.
const moveShards = "from two databases into this engine and back, while a program is writing"

var capabilities = []capability{
	{"README and the pages, as they show it", []string{"docs TestPagesRun"}},
	{"from one database to two and back, while a program is writing", []string{"docs TestOneToTwo"}},
	{moveShards, []string{"docs TestShardsToEngine"}},
	{"INSERT … VALUES, SET, REPLACE, IGNORE, ON DUPLICATE KEY UPDATE: as text, with arguments, prepared", []string{servertest + "TestMatrix|TestBatchWithManyPlaceholders|TestRaw|TestUpsertReturnsNoUnusedID|TestRandomStatements"}},
	{"transactions, savepoints, rows that bring their own keys", []string{servertest + "TestFlows|TestExplicitKeysKeep|TestExpressionKeys|TestLastInsertIDIsNever|TestNonzeroValue|TestServerKeepsRows|TestDuplicateMovesTheCounter"}},
	{"INSERT … SELECT", []string{servertest + "TestInsertSelect|Staged|Staging|TestTwin|TestUpsertsMayName"}},
	{"INSERT … SELECT and LOAD DATA into a table with a trigger BEFORE INSERT", []string{servertest + "TestSelectedIntoTableWithTriggers"}},
	{"LOAD DATA", []string{servertest + "TestLoadData"}},
	{"INSERT … RETURNING", []string{servertest + "TestReturningReturnsRows$"}},
	{"LAST_INSERT_ID() in SQL, in triggers and in stored functions", []string{servertest + "TestAllLastInsertIds|TestTrigger|Function|TestPrograms"}},
	{"temporary tables, DDL of the application", []string{servertest + "TemporaryTable|TestPreparedStatementOfHiddenTable|TestDDL|TestMovedColumns|TestIDsContinue|TestNoIDTwice|TestErrorNamesDropped|TestAlter"}},
	{"several statements in one text, LOCK TABLES, XA, session settings", []string{servertest + "TestSeveralStatements|TestStackedStatements|TestInsertIntoLockedTable|TestSessionSettingsStay|TestInternalQueries"}},
	{"keys of every integer type, DECIMAL, CHAR and VARCHAR", []string{servertest + "TestJudge|TestSmallColumn|TestTooSmallKeyColumn"}},
	{"UUIDs in BINARY(16) and CHAR(36)", []string{servertest + "TestUUID7FillsKeysOfEveryType"}},
	{"UUIDs in the type UUID", []string{servertest + "TestUUID7FillsKeysOfTypeUUID"}},
	{"snowflakes", []string{servertest + "TestSnowflake|TestBadSnowflake|TestStagedSnowflake"}},
	{"`leaf_alloc` under every isolation level and setting, faults and kill -9 included", []string{"idgen/segment .", "driver/internal/catalog ."}},
	{"`t_sequence`", []string{servertest + "TestSequence|TestLeafCreateMakesSequence|TestCyclingSequence|TestTablesShareSequence"}},
	{"worker ids in `leaf_worker`: crash, wipe, copy and fail-over included", []string{"idgen/worker/mysql .", servertest + "LeafWorker"}},
	{"`leafsql check`, `init`, `migrate`, `serve`", []string{"cmd/leafsql ."}},
	{"all other tests of the driver", []string{"driver .", servertest + "."}},
}

// packages are the packages with tests that run on every server, by the folder of their
// module.
var packages = []struct {
	module, tests string
	names         []string
}{
	{"docs", "PagesRun|OneToTwo|ShardsToEngine", []string{"."}},
	{".", "", []string{"./driver", "./driver/servertest", "./driver/internal/catalog", "./idgen/segment", "./idgen/worker/mysql"}},
	{"cmd/leafsql", "", []string{"."}},
}

// elsewhere matches tests in packages that are skipped here: they need no server, or a fixed one.
const elsewhere = "Galera|GroupReplication|Simulation|Mutations|Model"
