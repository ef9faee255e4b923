package main

import (
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// patience is how long work may take before a person is told that it goes on.
const patience = time.Second

// working shows on a terminal that something takes longer than a moment. The
// caller calls the function it returns when the work ends.
func working(what string) (done func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	end, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-end:
			return
		case <-time.After(patience):
		}
		bar := progressbar.NewOptions(-1, progressbar.OptionSetDescription(what), progressbar.OptionSetWriter(os.Stderr),
			progressbar.OptionSpinnerType(14), progressbar.OptionSetElapsedTime(true), progressbar.OptionClearOnFinish())
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-end:
				_ = bar.Finish() // a bar that cannot be cleared is no reason to fail
				return
			case <-tick.C:
				_ = bar.Add(1)
			}
		}
	}()
	return func() { close(end); <-gone }
}
