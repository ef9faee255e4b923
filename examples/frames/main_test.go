package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/python/pythontest"
)

// TestFrames runs the service until the crashing worker has died a few times:
// the steady one answers every frame, and nothing stays.
func TestFrames(t *testing.T) {
	python := pythontest.Interpreter(t, "numpy")
	memorytest.Check(t)
	var out strings.Builder
	if err := run(t.Context(), python, filepath.Join("..", "..", "python"), 60, 10*time.Millisecond, &out); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	var offered, answers, deaths int
	var crashing, crashingAnswers, crashes int
	var copied, leases, used int64
	_, err := fmt.Sscanf(out.String(), "steady worker: %d frames offered, %d answers, %d deaths\n"+
		"crashing worker: %d frames offered, %d answers, %d deaths\n"+
		"copied: %d bytes; still out: %d leases; still used: %d bytes\n",
		&offered, &answers, &deaths, &crashing, &crashingAnswers, &crashes, &copied, &leases, &used)
	if err != nil {
		t.Fatal(err)
	}
	if offered != 60 || answers != 60 || deaths != 0 {
		t.Errorf("steady worker: got %d of %d frames answered and %d deaths, want 60, 60, 0", answers, offered, deaths)
	}
	if crashes < 1 || crashingAnswers < 4*crashes {
		t.Errorf("crashing worker: got %d deaths and %d answers, want some, and 4 answers before each", crashes, crashingAnswers)
	}
	if copied != 0 || leases != 0 || used != 0 {
		t.Errorf("at the end: got %d bytes copied, %d leases, %d bytes, want none", copied, leases, used)
	}
}
