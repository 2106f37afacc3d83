// Package keyusage computes how far the ids of a tag have used up a key column, for
// the packages that export metrics.
package keyusage

import "github.com/leafsql/leafsql/driver"

// Fraction returns the fraction of a table's key column that is used, 0 … 1, or 0 if it is not known.
func Fraction(t driver.TableStats, tags []driver.TagStats) float64 {
	for _, tag := range tags {
		if t.HighestKey > 0 && tag.Tag == t.Tag && tag.Sequence == (t.Generator == "sequence") {
			return min(1, float64(HighestID(tag))/float64(t.HighestKey))
		}
	}
	return 0
}

// HighestID returns the highest id of the ranges in memory, or 0 if no range was fetched.
func HighestID(t driver.TagStats) int64 { return max(t.Current.End, t.Queued.End, 1) - 1 }
