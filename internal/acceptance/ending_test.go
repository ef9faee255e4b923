package acceptance_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// endings is a model in which a run can end at many places: it has inputs that
// are overwritten, one at the beginning and one at the end, steps of a user's
// operator in the body, in both branches, in a loop and on a size that depends
// on data, and every kind of output.
func endings() []byte {
	scale := func(g *onnxtest.Graph, in, out string, by float32) {
		g.Node("acme::Scale", []string{in}, []string{out}, onnxtest.Float("factor", by))
	}
	var g, yes, no, body onnxtest.Graph
	g.Input("state", onnxtest.F32, 4)
	g.Input("spare", onnxtest.F32, 4)
	g.Input("x", onnxtest.F32, 4)
	g.Input("c", onnxtest.Bool)
	g.Weight("iterations", onnxtest.I64, []byte{2, 0, 0, 0, 0, 0, 0, 0})

	g.Node("Neg", []string{"x"}, []string{"n"})
	scale(&g, "n", "m", 2)
	scale(&g, "spare", "s", 3)
	g.Node("NonZero", []string{"m"}, []string{"at"})
	g.Node("Transpose", []string{"at"}, []string{"tuples"}, onnxtest.Ints("perm", 1, 0))
	g.Node("GatherND", []string{"m", "tuples"}, []string{"some"})
	scale(&g, "some", "found", 2)

	scale(&yes, "m", "y1", 2)
	scale(&yes, "y1", "y2", 2)
	yes.Output("y2")
	scale(&no, "found", "f1", 1)
	no.Node("Size", []string{"f1"}, []string{"f2"})
	no.Node("Cast", []string{"f2"}, []string{"f3"}, onnxtest.Int("to", onnxtest.F32))
	no.Node("Add", []string{"m", "f3"}, []string{"f4"})
	no.Output("f4")
	g.Node("If", []string{"c"}, []string{"chosen"}, onnxtest.Subgraph("then_branch", &yes), onnxtest.Subgraph("else_branch", &no))

	body.Input("i", onnxtest.I64)
	body.Input("again", onnxtest.Bool)
	body.Input("v", onnxtest.F32, 4)
	body.Node("Identity", []string{"again"}, []string{"again2"})
	scale(&body, "v", "v2", 2)
	body.Node("Add", []string{"v2", "chosen"}, []string{"v3"})
	body.Output("again2")
	body.Output("v3")
	g.Node("Loop", []string{"iterations", "", "s"}, []string{"looped"}, onnxtest.Subgraph("body", &body))

	scale(&g, "state", "t", 2)
	g.Node("Add", []string{"t", "looped"}, []string{"next"})
	g.Node("Sub", []string{"x", "x"}, []string{"zeros"})
	g.Node("NonZero", []string{"zeros"}, []string{"none"})
	scale(&g, "chosen", "last", 2)
	for _, name := range []string{"at", "next", "found", "chosen", "none", "last"} {
		g.Output(name)
	}
	return g.File()
}

// trap springs at one moment of a run.
type trap struct {
	at, count int
	spring    func() error
	sprung    bool
}

func (p *trap) hit() error {
	p.count++
	if p.count-1 != p.at || p.spring == nil {
		return nil
	}
	p.sprung = true
	return p.spring()
}

// How a run can end.
const (
	returned = "returned"
	panicked = "panicked"
	exited   = "its goroutine ended"
)

// ending calls f on a goroutine of its own.
func ending(f func()) (how string, value any) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		how = exited
		defer func() {
			if v := recover(); v != nil {
				how, value = panicked, v
			}
		}()
		f()
		how = returned
	}()
	<-ended
	return how, value
}

// fickleSource is memory of the process that a trap guards.
type fickleSource struct{ trap *trap }

func (f fickleSource) Alloc(n int) (*memory.Buffer, error) {
	if err := f.trap.hit(); err != nil {
		return nil, err
	}
	return memory.Process(memory.IO).Alloc(n)
}

// fickleContext is a context that a trap guards.
type fickleContext struct {
	context.Context
	trap *trap
}

func (f fickleContext) Done() <-chan struct{} {
	if err := f.trap.hit(); err != nil {
		panic(err)
	}
	return f.Context.Done()
}

// endingTest makes one run after another end at one of the places where it can.
type endingTest struct {
	t                                 *testing.T
	s                                 *tenure.Session
	kernel, watch, rule, source, done trap // the points that a run passes
	running                           bool // and not being planned

	giveUp      func(x *tensor.Tensor) tensor.Operand
	way         string // how the session is called
	chosen      bool
	raw, before [][]byte // of the inputs that are given up: the bytes where they lie, and as they were
	mayWrite    bool     // a trap sprang in a kernel that was about to write into them
}

func newEndingTest(t *testing.T) *endingTest {
	e := &endingTest{t: t, way: byName}
	def := modeltest.ScaleOperator(func(c *op.Call) error {
		for _, data := range e.raw {
			if len(c.Out[0].Data) > 0 && &data[0] == &c.Out[0].Data[0] && e.kernel.count == e.kernel.at && e.kernel.spring != nil {
				e.mayWrite = true
			}
		}
		return e.kernel.hit()
	})
	infer := def.Infer
	def.Infer = func(s *op.Sig) error {
		if e.running {
			if err := e.rule.hit(); err != nil {
				return err
			}
		}
		return infer(s)
	}
	registry, err := op.Builtin().With(def)
	if err != nil {
		t.Fatal(err)
	}
	e.s = modeltest.Session(t, modeltest.LoadBytes(t, endings(), tenure.WithOperators(registry)), tenure.WithThreads(2), tenure.WithOutputsFrom(fickleSource{&e.source}))
	return e
}

// traps are the places where a trap can stand.
func (e *endingTest) traps() map[string]*trap {
	return map[string]*trap{"kernel": &e.kernel, "watch": &e.watch, "shape rule": &e.rule, "source": &e.source, "context": &e.done}
}

// once makes one run, with the traps as they are, checks the memory that it has
// left, and returns how it ended.
func (e *endingTest) once(ctx context.Context, name string) (how string, value any, out tenure.Outputs, err error) {
	t := e.t
	t.Helper()
	for _, p := range e.traps() {
		p.count, p.sprung = 0, false
	}
	e.mayWrite = false
	made := func(data ...float32) *tensor.Tensor { return modeltest.Must(tensor.Of(data, len(data))) }
	state, spare, x, into := made(1, 2, 3, 4), made(5, 6, 7, 8), made(0, -1, 0, 2), made(0, 0, 0, 0)
	cond := modeltest.Must(tensor.Of([]bool{e.chosen}))
	givenUp := []*tensor.Tensor{state, spare}
	e.raw, e.before = nil, nil
	for _, g := range givenUp {
		data, _ := g.UnsafeBytes()
		e.raw, e.before = append(e.raw, data), append(e.before, slices.Clone(data))
	}
	in := tenure.Inputs{"state": e.giveUp(state), "spare": e.giveUp(spare), "x": x, "c": cond}
	_, borrowed := in["state"].(*tensor.Tensor)
	written := func() bool { return !slices.EqualFunc(e.raw, e.before, slices.Equal) }
	wrote := false
	for _, p := range e.traps() {
		if spring := p.spring; spring != nil {
			p.spring = func() error { wrote = written(); return spring() }
			defer func() { p.spring = spring }()
		}
	}
	how, value = ending(func() {
		out, err = e.call(fickleContext{ctx, &e.done}, in, into)
	})
	wrote = wrote || e.mayWrite
	gone := how == returned && err == nil || wrote
	for i, g := range givenUp {
		data, useErr := tensor.Values[float32](g)
		switch {
		case gone && !borrowed:
			if !errors.Is(useErr, tenure.ErrDonated) {
				t.Errorf("%s: the run %s (%v, %v), input %d: got %v, %v, want %v", name, how, value, err, i, data, useErr, tenure.ErrDonated)
			}
		case useErr != nil || !g.IsExclusive() || !slices.Equal(data, map[int][]float32{0: {1, 2, 3, 4}, 1: {5, 6, 7, 8}}[i]):
			t.Errorf("%s: the run %s (%v, %v), input %d: got %v, %v, want it as it was", name, how, value, err, i, data, useErr)
		}
		_ = g.Release() // dead, or alive
	}
	if how == returned && err != nil && errors.Is(err, tenure.ErrPartlyWritten) != wrote {
		t.Errorf("%s: got %v, want %v exactly where an input was written: %v", name, err, tenure.ErrPartlyWritten, wrote)
	}
	for _, own := range []*tensor.Tensor{x, cond, into} {
		if !own.IsExclusive() {
			t.Errorf("%s: the run %s: a tensor of the caller: %v", name, how, own.WhyNotWritable())
		}
	}
	if how == returned && err == nil {
		out["chosen"] = into
	} else {
		modeltest.Must(0, into.Release())
	}
	modeltest.Must(0, errors.Join(x.Release(), cond.Release()))
	return how, value, out, err
}

// The ways in which a session is called.
const (
	byName     = "by name"
	byPosition = "by position"
	bound      = "bound"
)

// call runs the session in its way. The outputs that it returns are those of
// Run.
func (e *endingTest) call(ctx context.Context, in tenure.Inputs, into *tensor.Tensor) (tenure.Outputs, error) {
	opts := []tenure.RunOption{tenure.Into("chosen", into), tenure.Watch(func(*ir.Call, time.Duration) { _ = e.watch.hit() })}
	if e.way == byName {
		return e.s.Run(ctx, in, opts...)
	}
	var operands []tensor.Operand
	for _, info := range e.s.Model().Inputs() {
		operands = append(operands, in[info.Name])
	}
	infos := e.s.Model().Outputs()
	results := make([]*tensor.Tensor, len(infos))
	out := tenure.Outputs{}
	if e.way == byPosition {
		if err := e.s.RunInto(ctx, operands, results, opts...); err != nil {
			return nil, err
		}
	} else {
		b := modeltest.Must(e.s.Bind(opts...))
		defer func() { modeltest.Must(0, b.Close()) }()
		if _, err := b.Run(ctx, operands...); err != nil {
			return nil, err
		}
		for i, info := range infos {
			if info.Name != "chosen" {
				results[i] = modeltest.Must(b.Take(i))
			}
		}
	}
	for i, info := range infos {
		if results[i] != nil {
			out[info.Name] = results[i]
		}
	}
	return out, nil
}

// whole makes a run that nothing ends early, and checks its answer.
func (e *endingTest) whole(name string) {
	t := e.t
	t.Helper()
	how, value, out, err := e.once(context.Background(), name)
	if how != returned || err != nil {
		t.Fatalf("%s: the run %s: %v, %v, want outputs", name, how, value, err)
	}
	chosen := []float32{0, 8, 0, -16}
	if !e.chosen {
		chosen = []float32{2, 4, 2, -2}
	}
	next, last := make([]float32, 4), make([]float32, 4)
	for i, s := range []float32{15, 18, 21, 24} {
		next[i], last[i] = float32(2*(i+1))+4*s+3*chosen[i], 2*chosen[i]
	}
	for name, want := range map[string][]float32{"found": {4, -8}, "chosen": chosen, "next": next, "last": last} {
		if got := modeltest.Values(t, out[name]); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if at, err := tensor.Values[int64](out["at"]); err != nil || !slices.Equal(at, []int64{1, 3}) {
		t.Errorf("at: got %v, %v, want [1 3]", at, err)
	}
	if got := out["none"].NumElements(); got != 0 {
		t.Errorf("none: got %d elements, want none", got)
	}
	if err := out.Release(); err != nil {
		t.Error(err)
	}
}

// A run may succeed, be refused or fail before it has written into an input,
// fail afterwards, or panic, at any step and behind the last one: each time the
// inputs that were given up are either as they were or dead, nothing else is
// held, and the session goes on.
func TestEveryEnding(t *testing.T) {
	memorytest.Check(t)
	e := newEndingTest(t)
	failure := errors.New("the trap")
	ways := map[string]func() error{
		"error": func() error { return failure },
		"panic": func() error { panic(failure) },
		"exit":  func() error { runtime.Goexit(); return nil },
	}
	semantics := map[string]func(x *tensor.Tensor) tensor.Operand{
		"borrowed": func(x *tensor.Tensor) tensor.Operand { return x },
		"reused":   func(x *tensor.Tensor) tensor.Operand { return x.Reuse() },
		"donated":  func(x *tensor.Tensor) tensor.Operand { return x.Donate() },
	}
	seen := map[string]int{}
	for given, giveUp := range semantics {
		for i := range 6 {
			e.chosen, e.way = i%2 == 0, []string{byName, byPosition, bound}[i/2]
			e.giveUp = giveUp
			e.running = false
			e.whole(given)
			e.running = true
			e.whole(given) // counts the points that a run passes that is planned already
			before := memory.Stats().Total
			counts := map[string]int{}
			for where, p := range e.traps() {
				counts[where] = p.count
			}
			for where, p := range e.traps() {
				if counts[where] == 0 {
					t.Fatalf("%s: no run comes to it", where)
				}
				for way, spring := range ways {
					for p.at = range counts[where] {
						name := fmt.Sprintf("%s, %v, %s: %s in %s %d of %d", given, e.chosen, e.way, way, where, p.at, counts[where])
						p.spring = spring
						how, value, out, err := e.once(context.Background(), name)
						p.spring = nil
						e.judge(name, where, way, how, value, out, err, failure)
						seen[how+fmt.Sprint(errors.Is(err, tenure.ErrPartlyWritten))]++
					}
				}
			}
			e.whole(given + ", in the end")
			if after := memory.Stats().Total; after.Buffers != before.Buffers || after.Current != before.Current {
				t.Errorf("%s: got %d buffers of %d bytes, want %d of %d as before", given, after.Buffers, after.Current, before.Buffers, before.Current)
			}
		}
	}
	for _, kind := range []string{returned + "false", returned + "true", panicked + "false", exited + "false"} {
		if seen[kind] == 0 {
			t.Errorf("got no run that ended so: %s", kind)
		}
	}
}

// judge holds the way in which a run ended against the trap that sprang.
func (e *endingTest) judge(name, where, way, how string, value any, out tenure.Outputs, err, failure error) {
	t := e.t
	t.Helper()
	if p := e.traps()[where]; !p.sprung {
		t.Errorf("%s: the run did not come there", name)
	}
	want := map[string]string{"error": returned, "panic": panicked, "exit": exited}[way]
	switch {
	case where == "kernel" && way == "panic":
		want = returned // a panic of a user's kernel is an error
	case where == "context" && way == "error":
		want = panicked // it can return none
	case where == "watch" && way == "error":
		if err := out.Release(); err != nil { // nor can this: it goes on
			t.Error(err)
		}
		return
	}
	if how != want || how == returned && err == nil {
		t.Errorf("%s: the run %s: %v, %v, want that it %s", name, how, value, err, want)
	}
	if how == panicked && value != failure {
		t.Errorf("%s: got the panic %v, want that of the trap", name, value)
	}
	if how == returned && way == "error" && !errors.Is(err, failure) {
		t.Errorf("%s: got %v, want the error of the trap", name, err)
	}
}

// A context that ends at any step stops the run before the next one.
func TestCancelAtEveryStep(t *testing.T) {
	memorytest.Check(t)
	e := newEndingTest(t)
	e.giveUp = func(x *tensor.Tensor) tensor.Operand { return x.Donate() }
	e.whole("first")
	steps := e.watch.count
	for e.watch.at = range steps {
		ctx, cancel := context.WithCancel(context.Background())
		e.watch.spring = func() error { cancel(); return nil }
		how, value, out, err := e.once(ctx, fmt.Sprintf("step %d of %d", e.watch.at, steps))
		e.watch.spring = nil
		last := e.watch.at == steps-1
		if how != returned || (err == nil) != last || err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("step %d of %d: the run %s: %v, %v, want context.Canceled but at the last one", e.watch.at, steps, how, value, err)
		}
		if err := out.Release(); err != nil {
			t.Error(err)
		}
	}
	e.whole("in the end")
}

// A step that refuses its operands has written nothing, even where it would
// have written in place.
func TestRefusedStepConsumesNothing(t *testing.T) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, 4)
	g.Input("at", onnxtest.I64, 1, 1)
	g.Input("v", onnxtest.F32, 1)
	g.Node("ScatterND", []string{"x", "at", "v"}, []string{"y"})
	g.Output("y")
	s := modeltest.SessionOf(t, g.File())
	x := modeltest.Of(t, []float32{1, 2, 3, 4}, 4)
	in := tenure.Inputs{"x": x.Donate(), "at": modeltest.Of(t, []int64{9}, 1, 1), "v": modeltest.Of(t, []float32{7}, 1)}
	_, err := s.Run(t.Context(), in)
	if err == nil || errors.Is(err, tenure.ErrPartlyWritten) || !strings.Contains(err.Error(), "9") {
		t.Fatalf("got %v, want an error that names the place 9 and not %v", err, tenure.ErrPartlyWritten)
	}
	if got := modeltest.Values(t, x); !slices.Equal(got, []float32{1, 2, 3, 4}) {
		t.Fatalf("got %v, want the donated input as it was", got)
	}
	in["at"] = modeltest.Of(t, []int64{2}, 1, 1)
	if got := modeltest.Values(t, modeltest.Run(t, s, in)["y"]); !slices.Equal(got, []float32{1, 2, 7, 4}) {
		t.Errorf("got %v, want [1 2 7 4]", got)
	}
}

// A shape rule of a user's that panics while a plan is made leaves the model
// and the session as they were.
func TestPanicWhilePlanning(t *testing.T) {
	memorytest.Check(t)
	broken := false
	def := modeltest.ScaleOperator(nil)
	infer := def.Infer
	def.Infer = func(s *op.Sig) error {
		if broken {
			panic("no shape")
		}
		return infer(s)
	}
	m, s := acmeModel(t, def)
	x := modeltest.Of(t, modeltest.Ramp(4), 1, 4)
	shapes := tenure.Shapes{"x": {1, 4}}
	for name, f := range map[string]func(){
		"run":           func() { _, _ = s.Run(t.Context(), tenure.Inputs{"x": x.Donate()}) },
		"session plan":  func() { _, _ = s.Plan(t.Context(), shapes) },
		"plan for":      func() { _, _ = s.PlanFor(t.Context(), tenure.Inputs{"x": x}) },
		"model plan":    func() { _, _ = m.Plan(t.Context(), shapes) },
		"specialise":    func() { _, _ = m.Specialise(shapes, nil) },
		"specialise it": func() { _, _ = m.Specialise(shapes, func(string, *ir.Program) error { panic("no shape") }) },
	} {
		broken = name != "specialise it"
		if how, value := ending(f); how != panicked || value != "no shape" {
			t.Errorf("%s: %s: %v, want the panic of the shape rule", name, how, value)
		}
		if !x.IsExclusive() {
			t.Errorf("%s: the input: %v", name, x.WhyNotWritable())
		}
	}
	broken = false
	modeltest.Run(t, s, tenure.Inputs{"x": x})
}

// A run that waits for another one to end may panic there.
func TestPanicWhileWaiting(t *testing.T) {
	memorytest.Check(t)
	e := newEndingTest(t)
	e.giveUp = func(x *tensor.Tensor) tensor.Operand { return x.Donate() }
	e.whole("first")
	x := func() tenure.Inputs {
		return tenure.Inputs{"state": modeltest.Of(t, modeltest.Ramp(4), 4).Donate(), "spare": modeltest.Of(t, modeltest.Ramp(4), 4), "x": modeltest.Of(t, modeltest.Ramp(4), 4), "c": modeltest.Of(t, []bool{true})}
	}
	waiting := trap{spring: func() error { panic("gave up waiting") }}
	in, into, steps := x(), modeltest.Of(t, modeltest.Ramp(4), 4), 0
	out := modeltest.Run(t, e.s, x(), tenure.Watch(func(*ir.Call, time.Duration) {
		if steps++; steps != 3 {
			return
		}
		how, value := ending(func() { _, _ = e.s.Run(fickleContext{t.Context(), &waiting}, in, tenure.Into("chosen", into)) })
		if how != panicked || value != "gave up waiting" {
			t.Errorf("the second run %s: %v, want its panic", how, value)
		}
	}))
	if err := errors.Join(out.Release(), e.s.Close()); err != nil || steps < 3 {
		t.Errorf("got %v after %d steps", err, steps)
	}
	for name, own := range map[string]*tensor.Tensor{"input": in["state"].Tensor(), "output": into} {
		if !own.IsExclusive() {
			t.Errorf("the %s of the second run: %v", name, own.WhyNotWritable())
		}
	}
}
