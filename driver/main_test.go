package driver

import (
	"log/slog"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests create tables that leafsql warns about
	mysql.SetLogger(&mysql.NopLogger{})            // and close connections
	os.Exit(m.Run())
}
