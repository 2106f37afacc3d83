package driver

import (
	"log/slog"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests make tables that leafsql warns of
	mysql.SetLogger(&mysql.NopLogger{})            // and cut connections
	os.Exit(m.Run())
}
