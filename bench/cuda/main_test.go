package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/cuda"
)

// TestRun measures every case briefly where there is a device.
func TestRun(t *testing.T) {
	c, err := cuda.Open()
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("got %q, want one line", err)
		}
		t.Skip(err)
	}
	var out bytes.Buffer
	if err := run(&out, c, 0, 2, 1<<20, results.Output{}); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"kept block", "cached export", "donation", "host to device", "add on the device"} {
		if !strings.Contains(out.String(), what) {
			t.Errorf("got no %q in\n%s", what, out.String())
		}
	}
}
