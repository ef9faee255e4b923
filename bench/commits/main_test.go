package main

import (
	"maps"
	"testing"
)

func TestResults(t *testing.T) {
	got := results("goos: linux\nBenchmarkRun/borrow-2   \t  100\t  2345 ns/op\t 16 B/op\nBenchmarkRun/odd-2 1 2\nPASS\n")
	if want := map[string]float64{"Run/borrow-2": 2345}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The ranks are those of printed tables of the sign test.
func TestRank(t *testing.T) {
	for n, want := range map[int]int{7: 0, 8: 0, 9: 1, 11: 1, 12: 2, 15: 3, 20: 5, 25: 7} {
		if got := rank(n); got != want {
			t.Errorf("%d pairs: got %d values left out, want %d", n, got, want)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := median([]float64{4, 1, 2, 3}); got != 2.5 {
		t.Errorf("got %v, want 2.5", got)
	}
}
