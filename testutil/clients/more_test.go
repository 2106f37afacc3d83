//go:build unix && clients

package clients

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func python(args ...string) func(t *testing.T) *exec.Cmd {
	return func(t *testing.T) *exec.Cmd {
		return command("python", filepath.Join(installedFolder(t, "python"), "bin", "python"), args...)(t)
	}
}

func node(script ...string) func(t *testing.T) *exec.Cmd {
	return func(t *testing.T) *exec.Cmd {
		cmd := command("node", "node", script...)(t)
		cmd.Env = append(cmd.Env, "NODE_PATH="+filepath.Join(installedFolder(t, "node"), "node_modules"))
		return cmd
	}
}

func rust(args ...string) func(t *testing.T) *exec.Cmd {
	return func(t *testing.T) *exec.Cmd {
		return command("rust", filepath.Join(installedFolder(t, "rust"), "target", "debug", "clients"), args...)(t)
	}
}

// TestMoreClients has the programs with clients that come from PyPI, npm and crates.io, and
// settings that change the client's commands.
func TestMoreClients(t *testing.T) {
	runPrograms(t,
		program{name: "PHP PDO, found rows", command: command("php", "php", "pdo.php", "found")},
		program{name: "Python PyMySQL, newest", command: python("dbapi.py", "pymysql")},
		program{name: "Python mysqlclient", command: python("dbapi.py", "mysqldb")},
		program{name: "Python mysql-connector", command: python("dbapi.py", "connector")},
		program{name: "SQLAlchemy, PyMySQL", command: python("sqlalchemy_orm.py", "mysql+pymysql")},
		program{name: "SQLAlchemy, mysql-connector", command: python("sqlalchemy_orm.py", "mysql+mysqlconnector")},
		program{name: "Peewee", command: python("peewee_orm.py")},
		program{name: "Tortoise", command: python("tortoise_orm.py")},
		program{name: "MariaDB Connector/J, prepared", command: jdbc("mariadb", "useServerPrepStmts=true&cachePrepStmts=true")},
		program{name: "MariaDB Connector/J, bulk", command: jdbc("mariadb", "useServerPrepStmts=true&useBulkStmts=true&useBulkStmtsForInserts=true")},
		program{name: "MariaDB Connector/J, several statements", command: jdbc("mariadb", "allowMultiQueries=true")},
		program{name: "MySQL Connector/J", command: jdbc("mysql", "allowMultiQueries=true")},
		program{name: "MySQL Connector/J, prepared", command: jdbc("mysql", "useServerPrepStmts=true&cachePrepStmts=true&useLocalTransactionState=true")},
		program{name: "MySQL Connector/J, cursor", command: jdbc("mysql", "useServerPrepStmts=true&useCursorFetch=true&rewriteBatchedStatements=true")},
		program{name: "Hibernate, MariaDB Connector/J", command: java("hibernate", "Orm", "mariadb")},
		program{name: "Hibernate, MySQL Connector/J", command: java("hibernate", "Orm", "mysql")},
		program{name: "Spring, MyBatis, jOOQ, Flyway; MariaDB Connector/J", command: java("libraries", "Libraries", "mariadb", "sslMode=disable")},
		program{name: "Spring, MyBatis, jOOQ, Flyway; MySQL Connector/J", command: java("libraries", "Libraries", "mysql", "sslMode=DISABLED&rewriteBatchedStatements=true")},
		program{name: "Node mysql2", command: node("mysql2.js")},
		program{name: "Node mariadb", command: node("mariadb.js", "single")},
		program{name: "Node mariadb, bulk", command: node("mariadb.js", "bulk")},
		program{name: "Sequelize", command: node("sequelize.js")},
		program{name: "TypeORM", command: node("typeorm.js")},
		program{name: "Knex", command: node("knex.js")},
		program{name: "Prisma", command: node("prisma.js")},
		program{name: "Drizzle", command: node("drizzle.js")},
		program{name: "Ruby mysql2", command: command("ruby", "ruby", "mysql2.rb")},
		program{name: "Rust mysql", command: rust("mysql")},
		program{name: "Rust sqlx", command: rust("sqlx")},
		program{name: "Diesel", command: rust("diesel")},
		program{name: "Perl DBD::MariaDB", command: command("perl", "perl", "dbi.pl", "MariaDB")},
		program{name: "Perl DBD::MariaDB, prepared", command: command("perl", "perl", "dbi.pl", "MariaDB", "prepared")},
		program{name: "Perl DBD::mysql", command: command("perl", "perl", "dbi.pl", "mysql")},
		program{name: "Perl DBD::mysql, prepared", command: command("perl", "perl", "dbi.pl", "mysql", "prepared")},
	)
}
