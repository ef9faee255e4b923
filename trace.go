package tenure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tenure-go/tenure/plan"
)

// Report writes tables for people: the sums by operator and, of the nodes that
// took the longest, by node.
func (p *Profile) Report(w io.Writer) error {
	if w == nil {
		return errNoTraceWriter
	}
	const mostNodes = 30
	runs, took := p.Time()
	operators, nodes := p.ByOperator(), p.ByNode()
	var steps time.Duration
	count, live := 0, int64(0)
	for _, s := range operators {
		steps, count, live = steps+s.Took, count+s.Count, max(live, s.Live)
	}
	var out bytes.Buffer
	share := 0.0
	if took > 0 {
		share = float64(steps) / float64(took)
	}
	fmt.Fprintf(&out, "profile: %d runs of %s together, of which %d steps take %s (%.1f%%); at most %s of values are live\n",
		runs, took.Round(time.Microsecond), count, steps.Round(time.Microsecond), 100*share, plan.FormatBytes(live))
	table := func(list []ProfileSum, left int) {
		t := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(t, "\nsteps\ttime\tshare\tread\twritten\tGB/s\tlive\t  operator\n")
		for _, s := range list {
			name := strconv.Quote(s.Node)
			if name = name[1 : len(name)-1]; name != "" {
				name = "  " + name
			}
			fmt.Fprintf(t, "%d\t%s\t%.1f%%\t%s\t%s\t%.1f\t%s\t  %s%s\n", s.Count, s.Took.Round(10*time.Nanosecond), 100*s.Share,
				plan.FormatBytes(s.Read), plan.FormatBytes(s.Written), perSecond(s.Read+s.Written, s.Took)/1e9, plan.FormatBytes(s.Live), s.Op, name)
		}
		_ = t.Flush() // into memory
		if left > 0 {
			fmt.Fprintf(&out, "and %d more\n", left)
		}
	}
	table(operators, 0)
	if slices.ContainsFunc(nodes, func(s ProfileSum) bool { return s.Node != "" }) {
		n := min(len(nodes), mostNodes)
		table(nodes[:n], len(nodes)-n)
	}
	_, err := w.Write(out.Bytes())
	return err
}

var errNoTraceWriter = errors.New("profile: got no writer, want one")

// perSecond returns the rate of so many bytes.
func perSecond(bytes int64, in time.Duration) float64 {
	return float64(bytes) / max(in, 1).Seconds()
}

// traceEvent is an event of a trace in Chrome's format. Times are in
// microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X: a span, C: a counter, M: a name
	Time     float64        `json:"ts"`
	Took     *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Args     map[string]any `json:"args,omitempty"`
}

// WriteTrace writes the runs as a trace in the JSON format of Chrome, which
// ui.perfetto.dev and chrome://tracing open: a span for every run and in it for
// every step, with the bytes that it reads and writes, and counters of the
// bytes that are live and of those that are moved in a second. Runs at the same
// time are on threads of their own.
func (p *Profile) WriteTrace(w io.Writer) error {
	if w == nil {
		return errNoTraceWriter
	}
	text, err := json.Marshal(map[string]any{"displayTimeUnit": "ns", "traceEvents": p.events()})
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func (p *Profile) events() []traceEvent {
	if p == nil {
		return []traceEvent{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	const process = 1
	events := []traceEvent{{Name: "process_name", Phase: "M", Process: process, Args: map[string]any{"name": "tenure"}}}
	for lane := range p.lanes {
		events = append(events, traceEvent{Name: "thread_name", Phase: "M", Process: process, Thread: lane + 1,
			Args: map[string]any{"name": laneName("runs", lane)}})
	}
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	for _, r := range p.runs {
		add := func(e traceEvent, at, took time.Duration) {
			e.Time, e.Process, e.Thread = micros(at), process, r.lane+1
			if e.Phase == "X" {
				us := micros(took)
				e.Took = &us
			}
			events = append(events, e)
		}
		start := r.start.Sub(p.first)
		if r.took > 0 {
			add(traceEvent{Name: "run " + strconv.Itoa(r.number), Category: "run", Phase: "X", Args: map[string]any{
				"arena_bytes": r.plan.ArenaBytes, "scratch_bytes": r.plan.ScratchBytes, "io_bytes": r.plan.IOBytes, "weight_bytes": r.plan.WeightBytes}}, start, r.took)
		}
		live, rate := laneName("live bytes", r.lane), laneName("GB/s", r.lane)
		for i := range r.steps {
			s := &r.steps[i]
			name := s.Op
			if s.Node != "" {
				name = s.Node
			}
			add(traceEvent{Name: live, Phase: "C", Args: map[string]any{"arena": s.Live - s.Dynamic, "data-dependent": s.Dynamic}}, s.Start, 0)
			add(traceEvent{Name: rate, Phase: "C", Args: map[string]any{"moved": perSecond(s.Read+s.Written, s.Took) / 1e9}}, s.Start, 0)
			add(traceEvent{Name: name, Category: s.Op, Phase: "X", Args: map[string]any{"operator": s.Op, "step": s.Step, "read_bytes": s.Read,
				"written_bytes": s.Written, "live_bytes": s.Live}}, s.Start, s.Took)
		}
		if n := len(r.steps); n > 0 {
			end := r.steps[n-1].Start + r.steps[n-1].Took
			add(traceEvent{Name: live, Phase: "C", Args: map[string]any{"arena": 0, "data-dependent": 0}}, end, 0)
			add(traceEvent{Name: rate, Phase: "C", Args: map[string]any{"moved": 0}}, end, 0)
		}
	}
	return events
}

// laneName names the tracks of runs that are under way at the same time.
func laneName(what string, lane int) string {
	if lane == 0 {
		return what
	}
	return fmt.Sprintf("%s (%d)", what, lane+1)
}
