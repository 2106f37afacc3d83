//go:build unix

package main

import "github.com/leafsql/leafsql/testutil/mysqltest"

// programs are peers that are fetched from their repositories. Their suites
// start containers, or expect the server at a fixed address. The edits remove
// the containers, and the driver "mysql" always connects to the running server.
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
		name: "trillian", repository: "https://github.com/google/trillian", commit: "874e5ba14024068cbd481bea1236997fb7bb1200", // v1.7.3 and 20 commits
		pkgs: []string{"storage/mysql", "quota/mysqlqm"}, modes: ofAutoIncrement,
		stubs: []string{"github.com/apache/beam/sdks/v2"},
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
		name: "gotify", repository: "https://github.com/gotify/server", commit: "d543a8aad22fcbebf25e76d201b4317882b5e148", // v3.0.0 and 4 commits
		pkgs: []string{"database"}, modes: ofAutoIncrement, tests: "^TestDatabaseSuite$",
		edits: []edit{
			{"database/database_test.go", "import (\n", "import (\n\t\"database/sql\"\n"},
			{"database/database_test.go", `db, err := New("sqlite3", s.tmpDir.Path("testdb.db"),`, `server, err := sql.Open("mysql", "root@tcp(127.0.0.1:3306)/")
	s.Require().NoError(err)
	defer server.Close()
	for _, do := range []string{"DROP", "CREATE"} {
		_, err = server.Exec(do + " DATABASE conformance")
		s.Require().NoError(err)
	}
	db, err := New("mysql", "root@tcp(127.0.0.1:3306)/conformance?charset=utf8mb4&parseTime=True",`},
		},
	},
	{
		name: "shiori", repository: "https://github.com/go-shiori/shiori", commit: "585ea341aa59219b0477f991eadb545d24e3a121", // v1.8.0 and 2 commits
		pkgs: []string{"internal/database"}, modes: ofAutoIncrement, tests: "^TestMysqlsDatabase$",
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"SHIORI_TEST_MYSQL_URL=" + s.DSN(database), "SHIORI_TEST_MARIADB_URL=none", "SHIORI_TEST_PG_URL=none"}
		},
	},
	{
		name: "spire", repository: "https://github.com/spiffe/spire", commit: "ef8527ec91013c6c1b4741e0f6ac0786576e620e", // August 2026
		pkgs: []string{"pkg/server/datastore/sqlstore"}, modes: ofAutoIncrement, tests: "^TestPlugin$",
		edits: []edit{
			{"pkg/server/datastore/sqlstore/sqlstore_test.go", "TestDialect      string", `TestDialect = "mysql"`},
			{"pkg/server/datastore/sqlstore/sqlstore_test.go", "TestConnString   string", `TestConnString = "root@tcp(127.0.0.1:3306)/conformance?parseTime=true"`},
			{"pkg/server/datastore/sqlstore/sqlstore_test.go", "TestROConnString string", "TestROConnString = TestConnString"},
			{"pkg/server/datastore/sqltest/datastore_suite.go", "table_schema = 'spire'", "table_schema = DATABASE()"},
		},
	},
	{
		name: "one-api", repository: "https://github.com/songquanpeng/one-api", commit: "8df4a2670b98266bd287c698243fff327d9748cf", // v0.6.11-alpha.22 and a commit
		pkgs: []string{"model"}, modes: ofAutoIncrement, ownTests: "one-api_test.go",
	},
	{
		name: "semaphore", repository: "https://github.com/semaphoreui/semaphore", commit: "d4a27137486d65f963257d06e6b7867b54513e20", // v2.10.32 and 31 commits
		pkgs: []string{"db/sql"}, modes: ofAutoIncrement, ownTests: "semaphore_test.go", tests: "^TestProjects$",
	},
	{
		name: "cloudreve", repository: "https://github.com/cloudreve/Cloudreve", commit: "8fe28897722834f8c3c07df42eff62e9c0920c01", // 4.0.0 and 2 commits
		pkgs: []string{"inventory"}, modes: ofAutoIncrement, ownTests: "cloudreve_test.go",
	},
	{
		name: "alist", repository: "https://github.com/alist-org/alist", commit: "2830575490e72a7afc8fd8e6b790a163b92a13b5", // October 2024
		pkgs: []string{"internal/db"}, modes: ofAutoIncrement, ownTests: "alist_test.go",
	},
	{
		name: "answer", repository: "https://github.com/apache/answer", commit: "3b9f1370612e690a0b7f230f05e688930db4c6d3", // v2.0.2
		pkgs: []string{"internal/repo/repo_test"}, modes: ofAutoIncrement, stubs: []string{"gitee.com/travelliu/dm"},
		edits: []edit{{"internal/repo/repo_test/repo_main_test.go", `pool, err := dockertest.NewPool("")`,
			"if dbSetting.Driver == string(schemas.MYSQL) {\nreturn `root@tcp(127.0.0.1:3306)/conformance?parseTime=true`, func() {}, nil\n}\n" + `pool, err := dockertest.NewPool("")`}},
		env: func(*mysqltest.Server, string) []string { return []string{"TEST_DB_DRIVER=mysql"} },
	},
	{
		name: "dex", repository: "https://github.com/dexidp/dex", commit: "ab64ed778070e983cbb10cfc07ea4bb397d14312", // v2.45.0 and 330 commits
		pkgs: []string{"storage/ent"}, modes: ofAutoIncrement, tests: "^TestMySQL$",
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"DEX_MYSQL_ENT_HOST=127.0.0.1", "DEX_MYSQL_ENT_DATABASE=" + database}
		},
	},
	{
		name: "boulder", repository: "https://github.com/letsencrypt/boulder", commit: "2d00c8e27919fe945e53b2cf857838e68a1da111", // August 2026
		pkgs: []string{"sa"}, modes: ofAutoIncrement,
		schema: []string{"sa/db/00-create-databases.sql", "sa/db/01-boulder_sa.sql", "sa/db/01-incidents_sa.sql", "sa/db/01-mtcmeta_44947_4_1_0_44.sql"},
		env: func(*mysqltest.Server, string) []string {
			return []string{"DB_ADDR=127.0.0.1:3306", "BOULDER_CONFIG_DIR=test/config"}
		},
	},
}
