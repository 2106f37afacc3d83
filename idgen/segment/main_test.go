package segment_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(envWriter) != "" {
		writer()
		return
	}
	goleak.VerifyTestMain(m)
}
