package segment_test

import (
	"errors"
	"flag"
	"log/slog"
	"os"
	"testing"

	"github.com/go-sql-driver/mysql"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWriter) != "" {
		writer()
		return
	}
	flag.Set("test.parallel", "8") // the tests spend most of their time waiting
	slog.SetDefault(slog.New(slog.DiscardHandler))
	mysql.SetLogger(&mysql.NopLogger{})
	goleak.VerifyTestMain(m)
}

var errDown = errors.New("the database is down")

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
