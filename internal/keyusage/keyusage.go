// Package keyusage computes figures of tags from the statistics of package driver, for
// the packages that export metrics.
package keyusage

import "github.com/leafsql/leafsql/driver"

// Fraction returns the fraction of a table's key column that is used, 0 … 1, or 0 if it is not known.
func Fraction(t driver.TableStats, tags []driver.TagStats) float64 {
	for _, tag := range tags {
		if t.HighestKey > 0 && tag.Tag == t.Tag && Generator(tag) == t.Generator {
			return min(1, float64(HighestID(tag))/float64(t.HighestKey))
		}
	}
	return 0
}

// Generator returns the generator of the tables that use a tag, as in TableStats.Generator: "segment" or "sequence".
func Generator(t driver.TagStats) string {
	if t.Sequence {
		return string(driver.Sequence)
	}
	return string(driver.Segment)
}

// HighestID returns the highest id of the ranges in memory, or 0 if no range was fetched.
func HighestID(t driver.TagStats) int64 { return max(t.Current.End, t.Queued.End, 1) - 1 }
