//go:build unix

package main

import "github.com/leafsql/leafsql/testutil/mysqltest"

// programs are fetched from their repositories. Their suites start containers,
// or want the server at an address of theirs: the edits say instead that it is
// there, and the driver "mysql" connects to the one that runs.
var programs = []peer{
	{
		name: "memos", repository: "https://github.com/usememos/memos", commit: "2036c1ffc1b0a1e1fa6a473738c2a5ef520df67f", // v0.30.0
		pkgs: []string{"store/test"}, modes: ofAutoIncrement,
		edits: []edit{
			{"store/test/containers.go", "skipIfContainerProviderUnavailable(t)\n\n\tctx := context.Background()\n\n\tmysqlOnce.Do(func() {",
				"ctx := context.Background()\n\tmysqlBaseDSN.Store(`root@tcp(127.0.0.1:3306)/init_db?multiStatements=true`)\n\tmysqlOnce.Do(func() {\nreturn"},
			{"store/test/containers.go", "/init_db?", "/conformance?"},
		},
		env: func(*mysqltest.Server, string) []string { return []string{"DRIVER=mysql", "SKIP_CONTAINER_TESTS=1"} },
	},
	{
		name: "photoprism", repository: "https://github.com/photoprism/photoprism", commit: "382ffa89927f9fa2aca6ab83481177e0d81dd405", // December 2024
		sparse: []string{"/go.mod", "/go.sum", "*.go", "*.sql"},
		pkgs:   []string{"internal/entity", "internal/entity/query", "internal/entity/search"}, modes: ofAutoIncrement,
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"PHOTOPRISM_TEST_DRIVER=mysql", "PHOTOPRISM_TEST_DSN=" + s.DSN(database) + "?charset=utf8mb4&collation=utf8mb4_unicode_ci&parseTime=true"}
		},
	},
	{
		name: "trillian", repository: "https://github.com/google/trillian", commit: "874e5ba14024068cbd481bea1236997fb7bb1200", // v1.7.3 and 20 commits
		pkgs: []string{"storage/mysql", "quota/mysqlqm"}, modes: ofAutoIncrement,
	},
	{
		name: "openfga", repository: "https://github.com/openfga/openfga", commit: "da9354f7e6704cef47e620ffa2e08212c08d5ad3", // v1.18.1 and 6 commits
		pkgs: []string{"pkg/storage/mysql"}, modes: ofAutoIncrement,
		edits: []edit{{"pkg/testfixtures/storage/mysql.go", "func RunMysqlTestContainer(t testing.TB) DatastoreTestContainer {\n", `func RunMysqlTestContainer(t testing.TB) DatastoreTestContainer {
	if here := (&mysqlTestContainer{host: "127.0.0.1", port: "3306", database: mysqlDBPrefix + ulid.Make().String(), username: mysqlUsername, password: mysqlPassword}); true {
		var err error
		here.version, err = latestMigrationVersion(assets.MySQLMigrationDir)
		require.NoError(t, err)
		server, err := goose.OpenDBWithDriver("mysql", mysqlConnectionURI(here.host, here.port, "", here.username, here.password))
		require.NoError(t, err)
		defer server.Close()
		_, err = server.Exec("CREATE DATABASE ` + "`\" + here.database + \"`" + `")
		require.NoError(t, err)
		db, err := goose.OpenDBWithDriver("mysql", here.GetConnectionURI(true))
		require.NoError(t, err)
		defer db.Close()
		require.NoError(t, goose.Up(db, assets.MySQLMigrationDir))
		return here
	}
`}},
	},
	{
		name: "keto", repository: "https://github.com/ory/keto", commit: "e026d8391913caa2dcd1bff92311ce9d1181d821", // v26.2.0 and 104 commits
		pkgs: []string{"internal/persistence/sql", "internal/persistence/sql/migrations/uuidmapping"}, modes: ofAutoIncrement,
		edits: []edit{
			{"internal/x/dbx/dsn_testutils.go", "postgres, err = RunPostgres(t, testDB)", ""},
			{"internal/x/dbx/dsn_testutils.go", "cockroach, err = RunCockroach(t, testDB)", ""},
		},
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"TEST_DATABASE_MYSQL=mysql://" + s.DSN(database) + "?parseTime=true&multiStatements=true"}
		},
	},
}
