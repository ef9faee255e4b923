package tenure_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// TestProfile lists every step of every run, with its bytes and the live bytes.
func TestProfile(t *testing.T) {
	memorytest.Check(t)
	s := wide(t, tenure.WithThreads(1))
	x := wideInputs(t, 16)
	in := tenure.Inputs{"a": x[0], "b": x[1], "c": x[2], "d": x[2], "state": x[4]}
	var p tenure.Profile
	for range 3 {
		modeltest.Run(t, s, in, tenure.WithProfile(&p))
	}
	modeltest.Run(t, s, in)
	modeltest.Run(t, s, in, tenure.WithProfile(nil))
	d := modeltest.Must(s.PlanFor(t.Context(), in))
	steps := p.Steps()
	if len(steps) != 3*len(d.Steps) {
		t.Fatalf("got %d steps, want those of 3 runs of %d", len(steps), len(d.Steps))
	}
	const each = 16 * 4 * 4
	end, sum := time.Duration(0), time.Duration(0)
	for i, step := range steps {
		want := d.Steps[i%len(d.Steps)]
		read := int64(2 * each)
		if want.Op == "mul" {
			read = each // of one operand, twice
		}
		if step.Run != i/len(d.Steps) || step.Step != i%len(d.Steps) || step.Op != want.Op || step.Node != want.Node {
			t.Errorf("step %d: got %+v, want that of %+v", i, step, want)
		}
		if !strings.Contains(step.Op, "chain") && (step.Read != read || step.Written != each) {
			t.Errorf("step %d, %s: got %d bytes read and %d written, want %d and %d", i, step.Op, step.Read, step.Written, read, each)
		}
		if step.Start < end || step.Took < 0 || step.Dynamic != 0 || step.Live < 0 || step.Live > d.ArenaBytes {
			t.Errorf("step %d: got %+v after %v", i, step, end)
		}
		end = step.Start + step.Took
		sum += step.Took
	}
	runs, took := p.Time()
	if runs != 3 || took < sum {
		t.Errorf("got %d runs of %v, want 3 of at least the %v of the steps", runs, took, sum)
	}
	p.Reset()
	if runs, took := p.Time(); runs != 0 || took != 0 || len(p.Steps()) != 0 || len(p.ByNode()) != 0 {
		t.Error("after Reset: got runs")
	}
	modeltest.Run(t, s, in, tenure.WithProfile(&p))
	if steps := p.Steps(); len(steps) != len(d.Steps) || steps[0].Run != 0 || steps[0].Start < 0 {
		t.Errorf("after Reset and a run: got %+v", steps)
	}
}

// TestProfileOfLiveMemory finds the plan's peak where the plan has it, sums,
// and names.
func TestProfileOfLiveMemory(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, digits), tenure.WithThreads(1))
	in := tenure.Inputs{"image": modeltest.Of(t, modeltest.Ramp(64), 1, 1, 8, 8)}
	d := modeltest.Must(s.PlanFor(t.Context(), in))
	var p tenure.Profile
	for range 2 {
		modeltest.Run(t, s, in, tenure.WithProfile(&p))
	}
	most, at := int64(0), 0
	for _, step := range p.Steps() {
		if step.Live > most {
			most, at = step.Live, step.Step
		}
	}
	if most != d.Peak.Bytes || at != d.Peak.Step {
		t.Errorf("got a peak of %d bytes in step %d, want %d in %d", most, at, d.Peak.Bytes, d.Peak.Step)
	}
	nodes, operators := p.ByNode(), p.ByOperator()
	for name, list := range map[string][]tenure.ProfileSum{"nodes": nodes, "operators": operators} {
		count, share := 0, 0.0
		for i, sum := range list {
			count += sum.Count
			share += sum.Share
			if i > 0 && sum.Took > list[i-1].Took {
				t.Errorf("%s: got %v after %v, want the longest first", name, sum.Took, list[i-1].Took)
			}
		}
		if count != len(p.Steps()) || share < 0.999 || share > 1.001 {
			t.Errorf("%s: got sums of %d steps and shares of %v, want %d and 1", name, count, share, len(p.Steps()))
		}
	}
	if !slices.ContainsFunc(nodes, func(s tenure.ProfileSum) bool { return s.Node == "softmax" && s.Op == "softmax" && s.Count == 2 }) {
		t.Errorf("got nodes %+v, want softmax with 2 steps", nodes)
	}
	if len(operators) >= len(nodes) || operators[0].Node != "" {
		t.Errorf("got %d operators and %d nodes", len(operators), len(nodes))
	}
	var text bytes.Buffer
	if err := p.Report(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"profile: 2 runs of ", "at most 3.00 KiB of values are live", "operator", "gemm  dense", "softmax"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got a report\n%s\nwithout %q", text.String(), want)
		}
	}
}

// TestProfileOfDataDependentSizes counts the buffers that the plan does not
// promise, and a step in a loop once for each round.
func TestProfileOfDataDependentSizes(t *testing.T) {
	memorytest.Check(t)
	var g, body onnxtest.Graph
	g.Input("x", onnxtest.F32, "n")
	g.Weight("rounds", onnxtest.I64, append([]byte{3}, make([]byte, 7)...))
	body.Input("i", onnxtest.I64)
	body.Input("again", onnxtest.Bool)
	body.Input("v", onnxtest.I64, 2)
	body.Node("Identity", []string{"again"}, []string{"again2"})
	body.Node("Add", []string{"v", "v"}, []string{"v2"})
	body.Output("again2")
	body.Output("v2")
	g.Ints("start", 1, 2)
	g.Node("NonZero", []string{"x"}, []string{"places"})
	g.Node("Loop", []string{"rounds", "", "start"}, []string{"looped"}, onnxtest.Subgraph("body", &body))
	g.Output("places")
	g.Output("looped")
	s := modeltest.Session(t, modeltest.LoadBytes(t, g.File()))
	var p tenure.Profile
	x := modeltest.Ramp(1000)
	n := int64(0)
	for _, v := range x {
		if v != 0 {
			n++
		}
	}
	out := modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, x, len(x))}, tenure.WithProfile(&p))
	if got := out["places"].NumElements(); int64(got) != n {
		t.Fatalf("got %d elements, want %d", got, n)
	}
	count, most := map[string]int{}, int64(0)
	for _, step := range p.Steps() {
		count[step.Op]++
		most = max(most, step.Dynamic)
		if step.Op == "non_zero" && (step.Read != 4*int64(len(x)) || step.Written != 8*n) {
			t.Errorf("got %+v, want %d bytes read and %d written", step, 4*len(x), 8*n)
		}
		if step.Live < step.Dynamic {
			t.Errorf("got %+v, want that what is live includes it", step)
		}
	}
	if count["add"] != 3 || count["non_zero"] != 1 || most < 8*n || most > 8*int64(len(x)) {
		t.Errorf("got steps %v, at most %d bytes in buffers, want 3 add, 1 non_zero, and %d", count, most, 8*n)
	}
}

// chrome is a trace as a viewer reads it.
type chrome struct {
	TraceEvents []struct {
		Name string
		Cat  string
		Ph   string
		Ts   float64
		Dur  *float64
		Pid  int
		Tid  int
		Args map[string]any
	}
}

// TestTrace reads what WriteTrace wrote: spans lie in their run's, and counters
// follow the plan.
func TestTrace(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, digits), tenure.WithMaxConcurrent(2), tenure.WithThreads(1))
	in := tenure.Inputs{"image": modeltest.Of(t, modeltest.Ramp(64), 1, 1, 8, 8)}
	var p tenure.Profile
	// Two runs at the same time: the second one within a step of the first.
	once := false
	modeltest.Run(t, s, in, tenure.WithProfile(&p), tenure.Watch(func(*ir.Call, time.Duration) {
		if !once {
			once = true
			modeltest.Run(t, s, in, tenure.WithProfile(&p))
		}
	}))
	modeltest.Run(t, s, in, tenure.WithProfile(&p))
	var file bytes.Buffer
	if err := p.WriteTrace(&file); err != nil {
		t.Fatal(err)
	}
	var trace chrome
	if err := json.Unmarshal(file.Bytes(), &trace); err != nil {
		t.Fatal(err)
	}
	type span struct{ from, to float64 }
	runs := map[int][]span{}
	spans, threads, most := 0, map[int]string{}, 0.0
	for _, e := range trace.TraceEvents {
		switch {
		case e.Pid != 1:
			t.Errorf("got process %d, want 1", e.Pid)
		case e.Ph == "M" && e.Name == "thread_name":
			threads[e.Tid] = e.Args["name"].(string)
		case e.Ph == "X" && e.Cat == "run":
			runs[e.Tid] = append(runs[e.Tid], span{e.Ts, e.Ts + *e.Dur})
			if got := int64(e.Args["arena_bytes"].(float64)); got != modeltest.Must(s.PlanFor(t.Context(), in)).ArenaBytes {
				t.Errorf("%s: got an arena of %d bytes", e.Name, got)
			}
		case e.Ph == "X":
			spans++
			const rounding = 0.001
			own := runs[e.Tid][len(runs[e.Tid])-1]
			if e.Ts < own.from-rounding || e.Ts+*e.Dur > own.to+rounding || e.Args["operator"] != e.Cat {
				t.Errorf("step %s at %v for %v: want it within its run %v", e.Name, e.Ts, *e.Dur, own)
			}
		case e.Ph == "C" && strings.HasPrefix(e.Name, "live bytes"):
			most = max(most, e.Args["arena"].(float64))
		}
	}
	if len(runs[1]) != 2 || len(runs[2]) != 1 || threads[1] != "runs" || threads[2] != "runs (2)" || spans != len(p.Steps()) || spans == 0 {
		t.Errorf("got runs %v on threads %v and %d steps, want two on the first and one beside them", runs, threads, spans)
	}
	if peak := modeltest.Must(s.PlanFor(t.Context(), in)).Peak.Bytes; most != float64(peak) {
		t.Errorf("got at most %v live bytes, want the plan's peak %d", most, peak)
	}

	for _, empty := range []*tenure.Profile{nil, {}} {
		file.Reset()
		if err := errors.Join(empty.WriteTrace(&file), empty.Report(&file)); err != nil || !strings.Contains(file.String(), "traceEvents") {
			t.Errorf("of an empty profile: got %v, %q", err, file.String())
		}
	}
	broken := errors.New("disk full")
	if err := errors.Join(p.WriteTrace(failing{broken}), nil); !errors.Is(err, broken) {
		t.Errorf("got %v, want the writer's error", err)
	}
	if err := p.Report(failing{broken}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the writer's error", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// TestProfileOfFailedRuns has the steps until the failure, and its run has
// ended.
func TestProfileOfFailedRuns(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"), tenure.WithThreads(1))
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	var p tenure.Profile
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Run(ctx, tenure.Inputs{"state": x, "x": x}, tenure.WithProfile(&p), tenure.Watch(func(*ir.Call, time.Duration) { cancel() }))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that it was cancelled", err)
	}
	if runs, _ := p.Time(); runs != 1 || len(p.Steps()) == 0 || len(p.Steps()) > 2 {
		t.Errorf("got %d runs and steps %+v, want one, with the step that has run and maybe the one that was stopped", runs, p.Steps())
	}
}

// TestProfileAtOnce adds runs of many goroutines, by names and by position,
// while others read.
func TestProfileAtOnce(t *testing.T) {
	memorytest.Check(t)
	s := wide(t, tenure.WithMaxConcurrent(3), tenure.WithThreads(1))
	x := wideInputs(t, 2)
	var p tenure.Profile
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			out := make([]*tensor.Tensor, 4)
			for range 20 {
				if err := s.RunInto(context.Background(), operands(x), out, tenure.WithProfile(&p)); err != nil {
					t.Error(err)
				}
				_ = p.WriteTrace(&bytes.Buffer{})
			}
			for _, y := range out {
				_ = y.Release()
			}
		})
	}
	all.Wait()
	if runs, _ := p.Time(); runs != 80 {
		t.Errorf("got %d runs, want 80", runs)
	}
}

// The live bytes of the arena at a time are the union of the values live then.
func TestLiveBytesOfAPlan(t *testing.T) {
	d := plan.Plan{ArenaBytes: 192, Values: []plan.Value{
		{Space: plan.SpaceArena, Offset: 0, Size: 128, Start: 1, End: 4},
		{Space: plan.SpaceArena, Offset: 64, Size: 64, Start: 3, End: 6}, // in place
		{Space: plan.SpaceArena, Offset: 128, Size: 64, Start: 5, End: 7},
		{Space: plan.SpaceOutput, Size: 4096, Start: 1, End: 9},
	}}
	levels := d.LiveBytes()
	for at, want := range []int64{0, 128, 128, 128, 64, 128, 64, 0, 0} {
		got := int64(0)
		for _, l := range levels {
			if l.At <= plan.Time(at) {
				got = l.Bytes
			}
		}
		if got != want {
			t.Errorf("at %d: got %d bytes live, want %d", at, got, want)
		}
	}
}
