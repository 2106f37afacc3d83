//go:build unix

package mysqltest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Kind is a kind of server: MariaDB or MySQL.
type Kind string

const (
	MariaDB Kind = "mariadb"
	MySQL   Kind = "mysql"
)

// Kinds returns the kinds of the servers for tests: MariaDB and MySQL, or only the kind of the server that
// LEAFSQL_TEST_SERVER names.
func Kinds() []Kind {
	if name := os.Getenv(EnvServer); name != "" {
		return []Kind{kindOf(name)}
	}
	return []Kind{MariaDB, MySQL}
}

// kindOf returns the kind of a server with a name such as mysql-8.0. TiDB and Vitess count as MySQL.
func kindOf(name string) Kind {
	kind, _, _ := strings.Cut(name, "-")
	if kind == "tidb" || kind == "vitess" {
		return MySQL
	}
	return Kind(kind)
}

// A binary is an installed server program and how to run it.
type binary struct {
	kind    Kind
	tidb    bool
	vitess  bool
	path    string
	version string   // the line printed by --version, or all that TiDB and Vitess print
	loader  []string // command in front of path, for a server installed under a folder
	basedir string
}

// findBinary looks for the server that LEAFSQL_TEST_SERVER names, if the name has a version and the server is of that
// kind. Otherwise it looks in the folders of path, and then for the MySQL that `.ci/server mysql` installed in the cache
// folder.
func findBinary(kind Kind, path []string) (binary, error) {
	if name := os.Getenv(EnvServer); name == string(kindOf(name)) {
		kind = cmp.Or(kind, Kind(name))
	} else if kind == "" || kind == kindOf(name) {
		b, err := findInstalled(name)
		if err != nil {
			return binary{}, fmt.Errorf("mysqltest: %s names a server that is not here; run `.ci/server %s`: %w", EnvServer, name, err)
		}
		return b, nil
	}
	for _, name := range programs {
		for _, dir := range path {
			path := filepath.Join(dir, name)
			if info, err := os.Stat(path); err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
				continue
			}
			b := binary{path: path, basedir: filepath.Dir(filepath.Dir(path))}
			if b.identify() == nil && (kind == "" || kind == b.kind) {
				return b, nil
			}
		}
	}
	if kind != MariaDB {
		if b, err := findInstalled("mysql"); err == nil {
			return b, nil
		}
	}
	switch kind {
	case MySQL:
		return binary{}, errors.New("mysqltest: no MySQL server found; run `.ci/server mysql` (Debian), install the package mysql-server-core, or set " + EnvMySQLDSN)
	default:
		return binary{}, errors.New("mysqltest: no database server found; install the package mariadb-server-core (or mysql-server-core), or set " + EnvDSN)
	}
}

var programs = []string{"mariadbd", "mysqld"}

// Programs of TiDB and Vitess, which tests use only if LEAFSQL_TEST_SERVER names them.
const (
	tidb   = "tidb-server"
	vitess = "vtcombo" // all of Vitess in one process, except for MySQL
)

// findInstalled finds a server in the tree that .ci/server created. A tree of Debian's packages has its own
// loader and libraries, so the server needs neither chroot nor the tree's distribution.
func findInstalled(name string) (binary, error) {
	cache, err := cacheDir()
	if err != nil {
		return binary{}, err
	}
	root := filepath.Join(cache, name)
	for _, layout := range [][2]string{{"usr", "sbin"}, {"", "bin"}} {
		for _, program := range append(programs, tidb, vitess) {
			b := binary{basedir: filepath.Join(root, layout[0]), tidb: program == tidb, vitess: program == vitess}
			b.path = filepath.Join(b.basedir, layout[1], program)
			if _, err := os.Stat(b.path); err != nil {
				continue
			}
			if loaders := globFiles(root, "usr/lib/*-linux-gnu*/ld-linux*.so.*", "lib/*-linux-gnu*/ld-linux*.so.*"); len(loaders) > 0 {
				libs := globFiles(root, "usr/lib/*-linux-gnu*", "lib/*-linux-gnu*")
				b.loader = []string{loaders[0], "--library-path", strings.Join(libs, ":")}
			}
			if b.vitess && os.Geteuid() == 0 { // it refuses to run as root, and this user's files stay accessible
				b.loader = []string{"unshare", "--user", "--map-user=65534"}
			}
			return b, b.identify()
		}
	}
	return binary{}, os.ErrNotExist
}

// globFiles returns the files below a folder with paths that match one of the patterns.
func globFiles(root string, patterns ...string) (found []string) {
	for _, pattern := range patterns {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		found = append(found, files...)
	}
	return found
}

// cacheDir returns the folder in which the repository's tools keep files between
// runs.
func cacheDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(cache, "leafsql"), nil
}

func (b *binary) identify() error {
	args := []string{"--no-defaults", "--version"}
	switch {
	case b.tidb:
		args = []string{"-V"}
	case b.vitess:
		args = []string{"--version"}
	}
	out, err := b.command(args...).Output()
	if err != nil {
		return err
	}
	b.version = strings.TrimSpace(string(out))
	b.kind = MySQL
	if strings.Contains(b.version, "MariaDB") {
		b.kind = MariaDB
	}
	return nil
}

func (b binary) command(args ...string) *exec.Cmd {
	words := slices.Concat(b.loader, []string{b.path}, args)
	return exec.Command(words[0], words[1:]...)
}

// commonArgs returns the arguments of the first initialisation and of every start. The server does not sync files: the
// data is not needed after a crash of the machine, and it is not lost if the server is killed. The server's variables
// still have the values of a durable server, so that no test has to change them on a shared server. After such a change
// leafsql would treat the server as another one.
func (b binary) commonArgs(datadir string) []string {
	args := []string{
		"--no-defaults", // must come first
		"--basedir=" + b.basedir,
		"--datadir=" + datadir,
		"--tmpdir=" + filepath.Dir(datadir), // a starting server deletes the temporary files of other servers in its tmpdir
		"--character-set-server=utf8mb4",
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-flush-method=nosync",
		"--innodb-doublewrite=0",
		"--innodb-use-native-aio=0", // the kernel's limit on asynchronous requests is for the whole machine
		"--innodb-buffer-pool-size=128M",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root")
	}
	if b.kind == MySQL {
		args = append(args, "--mysqlx=OFF", "--secure-file-priv=NULL", "--performance-schema=OFF")
	}
	return args
}

func (b binary) serverArgs(datadir, socket string, port int, extra []string) []string {
	if b.tidb {
		return []string{"-config", datadir + ".toml", "-host", "127.0.0.1", "-P", strconv.Itoa(port), "-socket", socket, "-store", "unistore", "-path", datadir, "-L", "warn", "-report-status=false"}
	}
	args := append(b.commonArgs(datadir),
		"--bind-address=127.0.0.1",
		"--port="+strconv.Itoa(port),
		"--socket="+socket,
		"--pid-file="+socket+".pid",
		"--skip-name-resolve",
		"--max-connections=2000",
		"--max-connect-errors=4294967295",
		"--max-allowed-packet=64M",
		"--local-infile=ON",
		"--sync-binlog=0",
	)
	switch b.kind {
	case MariaDB:
		// With a file for each table, tests would be slower: they create and drop
		// thousands. MySQL would show the tablespace in SHOW CREATE TABLE.
		args = append(args, "--innodb-log-file-size=96M", "--innodb-file-per-table=0")
		if slices.Contains(globFiles(b.basedir, "bin/*"), b.path) {
			args = append(args, "--skip-ssl") // it would create a key at every start, which takes half a minute
		}
	case MySQL:
		args = append(args, "--innodb-redo-log-capacity=96M", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", // MySQL 9's defaults
			"--innodb-parallel-read-threads=1") // COUNT(*) of a few rows would start four threads each time
	}
	if b.loader != nil {
		args = append(args, "--plugin-dir="+b.basedir+"/lib/mysql/plugin")
	}
	if !slices.ContainsFunc(extra, func(arg string) bool { return strings.HasPrefix(arg, "--log-bin") }) {
		args = append(args, "--skip-log-bin")
	}
	return append(args, extra...)
}

// initArgs returns the arguments of an initialisation, with a small log, because the
// data directory is copied for every server.
func (b binary) initArgs(datadir string) []string {
	if b.kind == MySQL {
		return append(b.commonArgs(datadir), "--initialize-insecure", "--innodb-redo-log-capacity=16M")
	}
	return append(b.commonArgs(datadir), "--bootstrap", "--innodb-log-file-size=8M")
}

// initialize creates the server's own tables in an empty data directory, and one user: root, without a password, from
// this machine only. TiDB does so when it starts, and needs only the paths of its temporary files and slow log.
func (b binary) initialize(datadir string) error {
	if b.tidb {
		tmp := strconv.Quote(datadir + "/tmp")
		return os.WriteFile(datadir+".toml", []byte("temp-dir = "+tmp+"\ntmp-storage-path = "+tmp+"\n[log]\nslow-query-file = "+strconv.Quote(datadir+".slow")+"\n"), 0o600)
	}
	if b.kind == MySQL {
		init := datadir + ".sql"
		if err := os.WriteFile(init, []byte(rootUser), 0o600); err != nil {
			return fmt.Errorf("mysqltest: %w", err)
		}
		defer os.Remove(init)
		return run(b.command(append(b.initArgs(datadir), "--init-file="+init)...))
	}
	sql, err := b.systemTables()
	if err != nil {
		return err
	}
	cmd := b.command(b.initArgs(datadir)...)
	cmd.Stdin = strings.NewReader(sql)
	return run(cmd)
}

// rootUser allows root to connect over TCP: without name resolution 127.0.0.1 is not
// localhost.
const rootUser = `CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL PRIVILEGES ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
`

// systemTables returns the SQL that mariadb-install-db would execute. That program is not used because it needs
// other programs, from packages that a test machine may lack.
func (b binary) systemTables() (string, error) {
	var sql strings.Builder
	sql.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL, @skip_auth_anonymous='yes';\n")
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
		found := globFiles(b.basedir, "share/*/m*_"+name+".sql", "share/m*_"+name+".sql")
		if len(found) == 0 {
			return "", fmt.Errorf("mysqltest: %s/share holds no %s.sql; reinstall the package mariadb-server-core", b.basedir, name)
		}
		text, err := os.ReadFile(found[0])
		if err != nil {
			return "", fmt.Errorf("mysqltest: %w", err)
		}
		sql.Write(text)
		sql.WriteByte('\n')
	}
	sql.WriteString("FLUSH PRIVILEGES;\n" + rootUser)
	return sql.String(), nil
}

// searchPath returns the PATH with the folders of servers, which the PATH of an ordinary user may lack.
func searchPath() []string {
	return append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/usr/local/sbin", "/usr/libexec")
}
