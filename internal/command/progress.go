package command

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
)

// quiet is how long work may take before a person is told that it goes on.
const quiet = time.Second

// work is the current work of a command, for display on a terminal: work that
// takes longer than quiet is shown as a bar with percent where its amount is
// known, else as a spinner.
type work struct {
	mu    sync.Mutex
	what  string // as begun
	stage stage  // of it; without a name where nothing is known of it
}

// stage is a part of work of which so much is done. A total of 0 is not known.
type stage struct {
	name        string
	done, total int64
	bytes       bool // what done and total count
}

// begin shows on a terminal that something takes longer than a moment. The
// caller calls the function it returns when the work ends.
func (w *work) begin(what string) (done func()) {
	if !term.IsTerminal(int(os.Stderr.Fd())) {
		return func() {}
	}
	w.set(what, stage{})
	end, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		select {
		case <-end:
			return
		case <-time.After(quiet):
		}
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		w.show(os.Stderr, ticker.C, end)
	}()
	return func() { close(end); <-gone }
}

func (w *work) set(what string, s stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.what, w.stage = what, s
}

// report takes the progress of a model.
func (w *work) report(p tenure.Progress) {
	w.to(stage{name: string(p.Stage), done: p.Done, total: p.Total, bytes: true})
}

// to reports how far a stage of the work is. When it is done, nothing is known
// of the next one.
func (w *work) to(s stage) {
	if s.done >= s.total {
		s = stage{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stage = s
}

func (w *work) now() (what string, s stage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if what = w.what; w.stage.name != "" {
		what = w.stage.name
	}
	return what, w.stage
}

// show draws the work at every tick until it ends, and clears the display. A
// bar that cannot be drawn is no reason to fail.
func (w *work) show(to io.Writer, ticks <-chan time.Time, end <-chan struct{}) {
	var bar *progressbar.ProgressBar
	var of string
	var total int64
	for {
		select {
		case <-end:
			if bar != nil {
				_ = bar.Finish()
			}
			return
		case <-ticks:
		}
		what, s := w.now()
		if bar == nil || what != of || s.total != total {
			if bar != nil {
				_ = bar.Finish()
			}
			bar, of, total = newBar(to, what, s), what, s.total
		}
		if s.total > 0 {
			bar.Describe(clean(what) + s.amount())
			_ = bar.Set64(s.done)
		} else {
			_ = bar.Add(1)
		}
	}
}

// amount is how much is done. There is no rate: the bar begins in the middle of
// the work.
func (s stage) amount() string {
	if s.bytes {
		return fmt.Sprintf(", %s of %s", plan.FormatBytes(s.done), plan.FormatBytes(s.total))
	}
	return fmt.Sprintf(", %d of %d", s.done, s.total)
}

func newBar(to io.Writer, what string, s stage) *progressbar.ProgressBar {
	options := []progressbar.Option{progressbar.OptionSetWriter(to), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(true)}
	if s.total == 0 { // a spinner, which turns with the ticks and not by itself
		return progressbar.NewOptions64(-1, append(options, progressbar.OptionSetDescription(clean(what)), progressbar.OptionSpinnerType(14),
			progressbar.OptionSetSpinnerChangeInterval(0))...)
	}
	return progressbar.NewOptions64(s.total, append(options, progressbar.OptionSetDescription(clean(what)+s.amount()), progressbar.OptionSetWidth(30),
		progressbar.OptionSetRenderBlankState(true))...)
}
