package docs

import (
	"database/sql"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/worker"
	_ "github.com/leafsql/leafsql/idgen/worker/etcd"
	_ "github.com/leafsql/leafsql/idgen/worker/redis"
	_ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
	_ "github.com/leafsql/leafsql/nacos"
)

const base = "app@tcp(127.0.0.1:3306)/shop"

// TestOptionsAreDocumented: the DSN's options in the code, in dsn.md and in the comments of driver.Config are the same. A new option
// needs a row in the table and a heading in dsn.md, and its name in the comment of its field in driver.Config.
func TestOptionsAreDocumented(t *testing.T) {
	known := optionsInError(t, "?leafNoSuchOption=x")
	fields := configFields(t)
	var shown, onlyGo []string
	for _, row := range readTable(t, "dsn.md", "## Options") {
		name := strings.Trim(strings.SplitN(row[0], "]", 2)[0], "[")
		shown = append(shown, name)
		if want := "[" + name + "](#" + strings.ToLower(name) + ")"; row[0] != want {
			t.Errorf("dsn.md: the row of %s links to %s, want %s", name, row[0], want)
		}
		if got := quotedTexts(row[3]); name != "leafConfig" && !slices.Equal(got, fields[name]) {
			t.Errorf("dsn.md: fields of Config for %s = %v, want %v as in the comments of driver.Config", name, got, fields[name])
		}
		if values := quotedTexts(row[1]); strings.Contains(row[1], " or ") {
			for _, v := range append(values, quotedTexts(row[2])...) {
				if _, err := driver.ParseDSN(base + "?" + name + "=" + v); err != nil {
					t.Errorf("ParseDSN() with %s=%s = %v, want no error as in dsn.md", name, v, err)
				}
			}
			if _, err := driver.ParseDSN(base + "?" + name + "=other"); err == nil {
				t.Errorf("ParseDSN() with %s=other succeeded, want an error, since dsn.md lists the values", name)
			}
		}
		if name == "leafSnowflake" || name == "leafWorker" { // "" means the default
			continue
		}
		for _, v := range quotedTexts(row[2]) {
			cfg, err := driver.ParseDSN(base + "?" + name + "=" + v)
			if err != nil || cfg.FormatDSN() != base {
				t.Errorf("ParseDSN() with %s=%s, %v, changed the DSN; want the default, as in dsn.md", name, v, err)
			}
		}
	}
	compareNames(t, "dsn.md, Options", shown, "the code", known)
	compareNames(t, "the comments of driver.Config", slices.Collect(maps.Keys(fields)), "the code", known)

	for _, row := range readTable(t, "dsn.md", "## Settings in Go code only") {
		onlyGo = append(onlyGo, quotedTexts(row[0])...)
	}
	compareNames(t, "dsn.md, Settings in Go code only", onlyGo, "driver.Config's other fields", append(plainFields(t), "Rule.Generator"))
}

// TestSourceOptionsAreDocumented: the options of each source of worker ids are those in dsn.md, and each registered source has a row.
func TestSourceOptionsAreDocumented(t *testing.T) {
	var sources []string
	for _, row := range readTable(t, "dsn.md", "### Sources of worker ids") {
		name, _, _ := strings.Cut(strings.Trim(row[0], "`"), "(")
		sources = append(sources, name)
		_, err := worker.Lookup(name+"(127.0.0.1)", worker.Options{"NoSuchOption": "x"})
		if err == nil {
			t.Fatalf("Lookup(%s) with an unknown option: error = nil, want one", name)
		}
		_, list, _ := strings.Cut(err.Error(), "known are ")
		if list == "" {
			continue
		}
		known, shown := strings.Split(list, ", "), []string(nil)
		for _, row := range readTable(t, "dsn.md", "#### Options of "+name) {
			shown = append(shown, row[0])
		}
		compareNames(t, "dsn.md, Options of "+name, shown, "the code", known)
	}
	_, err := worker.Lookup("none()", nil)
	_, registered, _ := strings.Cut(err.Error(), "registered are ")
	registered, _, _ = strings.Cut(registered, " (")
	compareNames(t, "dsn.md, Sources of worker ids", sources, "the code", strings.Split(registered, ", "))
}

// TestSourceMistakesAreConfigErrors: a mistake in the options or the address of a source is a ConfigError of sql.Open, which names the
// parameter as it is in the DSN and shows no secret.
func TestSourceMistakesAreConfigErrors(t *testing.T) {
	for params, want := range map[string]string{
		"leafWorker=nacos(h)&leafNacosPasword=s3cret":                           "leafNacosPasword",
		"leafWorker=nacos(h)&leafNacosGRPCPort=abc":                             "leafNacosGRPCPort",
		"leafWorker=nacos(h)&leafNacosNamespace=a%20b":                          "leafWorker",
		"leafWorker=nacos()":                                                    "leafWorker",
		"leafWorker=nacos(u:s3cret@h)":                                          "leafWorker",
		"leafWorker=nacos(h)&leafNacosGroup=a&leafNacosGroup=b":                 "leafNacosGroup",
		"leafWorker=nacos(h)&leafNacosPassword=s3cret&leafnacosPassword=s3cret": "leafnacosPassword",
		"leafWorker=redis(h)&leafRedisDatabase=one":                             "leafRedisDatabase",
		"leafWorker=redis(h)&leafRedisPasswrd=s3cret":                           "leafRedisPasswrd",
		"leafWorker=redis()":                                                    "leafWorker",
		"leafWorker=redis(h)&leafRedisMaster=m&leafRedisCluster=true":           "leafWorker",
		"leafWorker=etcd(h)&leafEtcdTLS=maybe":                                  "leafEtcdTLS",
		"leafWorker=etcd(h)&leafEtcdTLS=true&leafEtcdCA=%2Fno%2Fsuch":           "leafEtcdCA",
		"leafWorker=zookeeper(h)&leafZooKeeperNmae=x":                           "leafZooKeeperNmae",
		"leafWorker=zookeeper(h)&leafZooKeeperPassword=s3cret":                  "leafWorker",
		"leafWorker=static(seven)":                                              "leafWorker",
		"leafWorker=static(7)&leafStaticName=x":                                 "leafStaticName",
		"leafWorker=env(NO_SUCH_VARIABLE)":                                      "leafWorker",
	} {
		db, err := sql.Open(driver.Name, "app:pw@tcp(127.0.0.1:1)/shop?leafTables=events:id:snowflake&"+params)
		if err == nil {
			err = db.Ping()
			db.Close()
		}
		var mistake *driver.ConfigError
		if !errors.As(err, &mistake) || mistake.Param != want || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v, want a ConfigError of %s", params, err, want)
		}
	}
}

// optionsInError returns the options that are listed in the error of a wrong DSN.
func optionsInError(t *testing.T, params string) []string {
	t.Helper()
	_, err := driver.ParseDSN(base + params)
	if err == nil {
		t.Fatalf("ParseDSN() with %s: error = nil, want one", params)
	}
	_, list, found := strings.Cut(err.Error(), "known are ")
	if !found {
		t.Fatalf("error = %v, want a list of the known options", err)
	}
	list, _, _ = strings.Cut(list, ", and ")
	return strings.Split(list, ", ")
}

// configFields returns, for each option in a comment of driver.Config, the exported fields with
// that comment.
func configFields(t *testing.T) map[string][]string {
	fields := map[string][]string{}
	for _, f := range configStruct(t) {
		for _, option := range leafNames(f) {
			fields[option] = append(fields[option], exportedNames(f)...)
		}
	}
	return fields
}

// plainFields returns the exported fields of driver.Config that no option sets.
func plainFields(t *testing.T) []string {
	var names []string
	for _, f := range configStruct(t) {
		if len(leafNames(f)) == 0 {
			names = append(names, exportedNames(f)...)
		}
	}
	return names
}

func configStruct(t *testing.T) []*ast.Field {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../driver/config.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range file.Decls {
		if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.TYPE {
			if spec := d.Specs[0].(*ast.TypeSpec); spec.Name.Name == "Config" {
				return spec.Type.(*ast.StructType).Fields.List
			}
		}
	}
	t.Fatal("driver/config.go has no type Config, want one")
	return nil
}

var optionName = regexp.MustCompile(`\bleaf[A-Z][A-Za-z]*`)

// leafNames returns the options in a field's comment, except those of a source, such as
// leafNacosX=.
func leafNames(f *ast.Field) []string {
	names := optionName.FindAllString(f.Doc.Text()+f.Comment.Text(), -1)
	return slices.DeleteFunc(slices.Compact(names), func(n string) bool { return f.Names[0].Name == "WorkerOptions" })
}

func exportedNames(f *ast.Field) []string {
	var names []string
	for _, n := range f.Names {
		if n.IsExported() {
			names = append(names, n.Name)
		}
	}
	return names
}

// quotedTexts returns the texts in backquotes.
func quotedTexts(cell string) []string {
	var all []string
	for _, m := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(cell, -1) {
		all = append(all, m[1])
	}
	return all
}

// compareNames compares two lists, in any order.
func compareNames(t *testing.T, where string, got []string, whence string, want []string) {
	t.Helper()
	for _, n := range want {
		if !slices.Contains(got, n) {
			t.Errorf("%s lacks %s, want it as in %s", where, n, whence)
		}
	}
	for i, n := range got {
		if !slices.Contains(want, n) || slices.Contains(got[:i], n) {
			t.Errorf("%s has %s, want it once and only if it is in %s", where, n, whence)
		}
	}
}
