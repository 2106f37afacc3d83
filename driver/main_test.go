package driver_test

import (
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the tests make tables that leafsql warns of
	mysql.SetLogger(&mysql.NopLogger{})            // and cut connections
	if os.Getenv(envWriter) != "" {
		if err := write(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(envStoresWriter) != "" {
		if err := writeOn(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if os.Getenv(envInserter) != "" {
		if err := inserter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
