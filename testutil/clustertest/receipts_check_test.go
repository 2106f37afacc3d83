//go:build unix

package clustertest_test

import (
	"testing"
	"time"
)

func storeReceipts(all ...receipt) (stored storedRows) {
	for _, one := range all {
		for i := range one.rows {
			stored.add(one.writer, one.n+i, one.first+int64(i))
		}
	}
	return stored
}

// TestCompareFindsFaults: ids issued twice, lost rows and rows with another id are counted.
func TestCompareFindsFaults(t *testing.T) {
	a, b := receipt{writer: 0, n: 1, rows: 10, first: 101}, receipt{writer: 1, n: 1, rows: 5, first: 111}
	again := receipt{writer: 1, n: 6, rows: 2, first: 110}
	for _, test := range []struct {
		name              string
		acknowledged      []receipt
		stored            storedRows
		twice             int64
		lost, wrong, rows int
	}{
		{"all rows stored", []receipt{a, b}, storeReceipts(a, b), 0, 0, 0, 15},
		{"rows without acknowledgement", []receipt{a}, storeReceipts(a, b), 0, 0, 0, 10},
		{"ids twice", []receipt{a, b, again}, storeReceipts(a, b, again), 2, 0, 0, 17},
		{"an id twice without acknowledgement", []receipt{a, b}, storeReceipts(a, b, receipt{writer: 0, n: 50, rows: 1, first: 115}), 1, 0, 0, 15},
		{"lost rows", []receipt{a, b}, storeReceipts(a), 0, 5, 0, 15},
		{"ids of lost rows twice", []receipt{a, b, again}, storeReceipts(b, again), 2, 10, 0, 17},
		{"another id", []receipt{a}, storeReceipts(receipt{writer: 0, n: 1, rows: 10, first: 102}), 9, 0, 10, 10},
	} {
		r := receipts{all: test.acknowledged}
		c := r.compare(test.stored)
		lost, rows := c.lost[0]+c.lost[1], c.rows[0]+c.rows[1]
		if c.ids.Duplicates != test.twice || lost != test.lost || c.wrong != test.wrong || rows != test.rows {
			t.Errorf("%s: compare() = %d twice, %d lost, %d wrong of %d rows, want %d, %d, %d of %d",
				test.name, c.ids.Duplicates, lost, c.wrong, rows, test.twice, test.lost, test.wrong, test.rows)
		}
	}
}

// TestLongestSilence: the time in which the plain writer had no success either does not count.
func TestLongestSilence(t *testing.T) {
	at := func(ms ...int) (times []time.Duration) {
		for _, m := range ms {
			times = append(times, time.Duration(m)*time.Millisecond)
		}
		return times
	}
	for _, test := range []struct {
		name        string
		leaf, plain []int
		want        time.Duration
	}{
		{"no outage", []int{100, 200, 300, 400}, []int{100, 200, 300, 400}, 100 * time.Millisecond},
		{"both are away", []int{100, 900, 1000}, []int{100, 800, 900, 1000}, 100 * time.Millisecond},
		{"leaf is back earlier", []int{100, 600, 700, 900, 1000}, []int{100, 800, 900, 1000}, 100 * time.Millisecond},
		{"leaf is back later", []int{100, 900, 1000}, []int{100, 500, 600, 700, 800, 1000}, 400 * time.Millisecond},
		{"only leaf is away", []int{100, 1000}, []int{100, 300, 500, 700, 900}, 900 * time.Millisecond},
		{"leaf is not back", []int{100}, []int{100, 500, 700, 900}, 500 * time.Millisecond},
		{"two outages", []int{100, 1000}, []int{50, 100, 400, 600, 900}, 200 * time.Millisecond},
	} {
		outages := gaps(at(test.plain...), 0, time.Second, outageGap)
		if got := longestSilence(gaps(at(test.leaf...), 0, time.Second, 0), outages); got != test.want {
			t.Errorf("%s: longestSilence() = %v, want %v", test.name, got, test.want)
		}
	}
}
