package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
)

// drawn returns the lines that are displayed for work at one tick for each
// step.
func drawn(w *work, steps ...func()) []string {
	var out bytes.Buffer
	ticks, end, gone := make(chan time.Time), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		w.show(&out, ticks, end)
	}()
	var seen []string
	for _, step := range steps {
		step()
		ticks <- time.Time{}
		// The next tick is taken when the one before has been drawn.
		ticks <- time.Time{}
		ticks <- time.Time{}
	}
	close(end)
	<-gone
	for line := range strings.SplitSeq(out.String(), "\r") {
		if line = strings.TrimSpace(line); line != "" && (len(seen) == 0 || seen[len(seen)-1] != line) {
			seen = append(seen, line)
		}
	}
	return seen
}

// A stage whose total is known is a bar with percent, and the amount; anything
// else is a spinner with its name.
func TestWorkShowsPercent(t *testing.T) {
	var w work
	w.set("running", stage{})
	lines := drawn(&w,
		func() {},
		func() { w.report(tenure.Progress{Stage: tenure.PackingWeights, Done: 0, Total: 8 << 20}) },
		func() { w.report(tenure.Progress{Stage: tenure.PackingWeights, Done: 2 << 20, Total: 8 << 20}) },
		func() { w.report(tenure.Progress{Stage: tenure.PackingWeights, Done: 8 << 20, Total: 8 << 20}) },
		func() { w.to(stage{name: "networks", done: 1, total: 5}) })
	at := 0
	for _, want := range [][]string{{"running"}, {"packing weights", "0%"}, {"packing weights, 2.00 MiB of 8.00 MiB", "25%"}, {"running"}, {"networks, 1 of 5", "20%"}} {
		has := func(line string) bool {
			for _, part := range want {
				if !strings.Contains(line, part) {
					return false
				}
			}
			return true
		}
		for at < len(lines) && !has(lines[at]) {
			at++
		}
		if at == len(lines) {
			t.Fatalf("got %q, want %q in their order, at last %q", lines, "running, packing, running, networks", want)
		}
	}
}

// What a file calls itself does not reach the terminal as it is.
func TestWorkIsClean(t *testing.T) {
	var w work
	w.set("loading \x1b[31mred", stage{})
	for _, line := range drawn(&w, func() {}) {
		if strings.Contains(line, "\x1b[31m") {
			t.Errorf("got %q, want no control characters of the name", line)
		}
	}
}

// Nothing is drawn before the first tick, and nothing stays when the work ends.
func TestWorkThatEndsAtOnce(t *testing.T) {
	var w work
	if got := drawn(&w); len(got) > 0 {
		t.Errorf("got %q, want nothing", got)
	}
	done := w.begin("nothing") // standard error of tests is no terminal
	done()
}
