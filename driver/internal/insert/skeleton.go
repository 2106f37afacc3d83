package insert

type span struct{ from, to int }
type edit struct{}
type keyRow struct{}
