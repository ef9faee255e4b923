package main

import (
	"maps"
	"testing"
)

func TestTimes(t *testing.T) {
	got := times("goos: linux\nBenchmarkRun/borrow-2   \t  100\t  2345 ns/op\t 16 B/op\nBenchmarkRun/odd-2 1 2\nPASS\n")
	if want := map[string]float64{"Run/borrow-2": 2345}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
