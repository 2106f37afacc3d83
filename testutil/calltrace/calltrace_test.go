package calltrace

import (
	"slices"
	"testing"
)

func TestInstrumentAddsCallsToFunctions(t *testing.T) {
	const source = `//go:build linux

package made // up

type list[T any] struct{}

func (l *list[T]) add(T) {}

func one() int { return 1 }
`
	const want = `//go:build linux

package made; import calltrace "github.com/leafsql/leafsql/testutil/calltrace" // up

type list[T any] struct{}

func (l *list[T]) add(T) { calltrace.Enter("made/up.go:list.add");}

func one() int { calltrace.Enter("made/up.go:one"); return 1 }
`
	got, err := instrument("made/up.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func ask()    { Enter("ask"); answer() }
func answer() { Enter("answer") }
func ready()  { Enter("ready"); answer() }

func TestRecordCallsListsFunctionsOfTheGoroutine(t *testing.T) {
	ask()
	got := RecordCalls(func() {
		ready()
		func() { ask() }()
		ask()
		done := make(chan bool)
		go func() { Enter("elsewhere"); close(done) }()
		<-done
	}, "ready")
	ask()
	if want := []string{"ask", "answer"}; !slices.Equal(got, want) {
		t.Errorf("RecordCalls() = %v, want %v", got, want)
	}
	if got := RecordCalls(ready); !slices.Equal(got, []string{"ready", "answer"}) {
		t.Errorf("RecordCalls(ready) = %v, want [ready answer]", got)
	}
}
