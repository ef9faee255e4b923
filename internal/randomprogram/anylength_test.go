package randomprogram_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// TestAnyLength draws programs with open dimensions and control flow. A model
// of each is loaded once and runs at eight sets of sizes, each met at a moment
// that is drawn, with other data when it is met again, in two sessions, with
// inputs that are lent, donated and reused, and with outputs that the caller
// has. Some programs run all sets at the same time then. The results are those
// of the interpreter, and nothing is left behind.
//
//	go test ./internal/randomprogram -run 'TestAnyLength$' -rapid.checks=100000 -rapid.seed=7 -rapid.nofailfile -timeout 4h
func TestAnyLength(t *testing.T) {
	memorytest.Check(t)
	seen := forRandom(t, 250, func(t *rapid.T, _ *compute.Pool, seen map[string]int) *ir.Program {
		o := randomprogram.DrawOpen(t)
		anyLength(t, o, seen)
		return o.Program
	})
	if testing.Short() {
		return
	}
	for _, what := range []string{"instances", "structures", "compared", "refused", "if", "loop", "non_zero", "donated", "reused", "into", "at once", "zero elements", "large"} {
		if seen[what] == 0 {
			t.Errorf("got no %s, want some", what)
		}
	}
	if instances, compiled := seen["instances"], seen["compiled"]; 5*instances < 2*compiled {
		t.Errorf("got %d instances in %d sets of sizes, want 2 of 5 or more: the test is of instances", instances, compiled)
	}
}

// met is a set of sizes with the data of a run, and the interpreter's results.
type met struct {
	inputs, want []op.Arg
	refused      error
}

// mostBytes bounds a value of the interpreter: sizes at which one is larger are
// left out.
const mostBytes = 1 << 21

func anyLength(t *rapid.T, o *randomprogram.Open, seen map[string]int) {
	m, err := tenure.LoadProgram(o.Program, o.Weights)
	if err != nil {
		if !errors.Is(err, shape.ErrShape) && !errors.Is(err, op.ErrUnsupported) || strings.Contains(err.Error(), "BUG:") {
			t.Fatalf("load: %v\n%s", err, o.Program)
		}
		seen["refused when loaded"]++
		return
	}
	r := &lengthRun{Open: o, t: t, model: m, seen: seen}
	defer r.close()
	for _, threads := range []int{1, 2} {
		s, err := m.NewSession(tenure.WithThreads(threads), tenure.WithPlans(3*threads), tenure.WithMaxConcurrent(threads))
		if err != nil {
			t.Fatal(err)
		}
		r.sessions = append(r.sessions, s)
	}
	sets := make([][]op.Type, 8)
	for i := range sets {
		sets[i] = o.Sizes(t)
	}
	var all []met
	order := append(rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7}).Draw(t, "order"), rapid.SliceOfN(rapid.IntRange(0, 7), 0, 4).Draw(t, "again")...)
	for seed, k := range order {
		x, ok := r.interpret(sets[k], seed)
		if !ok {
			continue
		}
		all = append(all, x)
		if fault := r.run(x, r.sessions[rapid.IntRange(0, 1).Draw(t, "session")], r.draw(len(x.inputs))); fault != "" {
			t.Fatalf("%s\n%s", fault, r.describe(x))
		}
	}
	if invariant.Race || rapid.IntRange(1, 8).Draw(t, "at once") == 1 {
		r.atOnce(all)
	}
	r.count()
}

// lengthRun is a model of a drawn program with its sessions.
type lengthRun struct {
	*randomprogram.Open
	t        *rapid.T
	model    *tenure.Model
	sessions []*tenure.Session

	mu   sync.Mutex
	seen map[string]int
}

func (r *lengthRun) close() {
	for _, s := range r.sessions {
		s.Close()
	}
	r.model.Close()
}

func (r *lengthRun) note(what string) {
	r.mu.Lock()
	r.seen[what]++
	r.mu.Unlock()
}

func (r *lengthRun) count() {
	f := r.model.Structures()
	r.seen["compiled"] += f.Compiled
	r.seen["instances"] += f.Instances
	r.seen["evicted"] += f.Evictions
	r.seen["structures"] += f.Kept
	for reason, n := range f.Pinned {
		r.seen["pinned: "+reason] += n
	}
	r.Program.Walk(func(_ *ir.Block, c *ir.Call) { r.seen[c.Op.Name]++ })
}

// interpret runs the program the plain way. It returns false for sizes at which
// a value is too large.
func (r *lengthRun) interpret(types []op.Type, seed int) (x met, ok bool) {
	x.inputs = r.Inputs(types, seed)
	p := r.Program.Clone()
	if err := errors.Join(p.Bind(types...), ir.Infer(p, ir.Known(r.Weights))); err != nil {
		p = r.Program.Clone()
	} // else a loop of no rounds returns parts of the sizes that are known
	run := func() error {
		x.want, x.refused = (&ir.Interpreter{Eval: compute.Eval, Weights: r.Weights, MaxBytes: mostBytes}).Run(p, x.inputs...)
		return x.refused
	}
	if run() != nil && pass.DCE.Run(&pass.Context{Program: p, Constants: &weights.Overlay{Base: r.Weights}}) == nil {
		_ = run() // a call that sizes do not fit may be dead
	}
	if x.refused != nil && strings.Contains(x.refused.Error(), fmt.Sprintf("want at most %d bytes", mostBytes)) {
		r.seen["too large"]++
		return x, false
	}
	for _, t := range types {
		if n := t.Shape.NumElements(); n == 0 {
			r.seen["zero elements"]++
		} else if n > 1<<12 {
			r.seen["large"]++
		}
	}
	return x, true
}

// manner is how a run is given its inputs and outputs.
type manner struct {
	inputs []tensor.CopySemantics
	into   bool // the first output
}

func (r *lengthRun) draw(inputs int) manner {
	how := manner{into: rapid.IntRange(1, 4).Draw(r.t, "into") == 1}
	for range inputs {
		how.inputs = append(how.inputs, rapid.SampledFrom([]tensor.CopySemantics{tensor.Borrow, tensor.Borrow, tensor.ReuseInput, tensor.DonateInput}).Draw(r.t, "given"))
	}
	return how
}

// run runs the model and compares. It returns the fault.
func (r *lengthRun) run(x met, s *tenure.Session, how manner) (fault string) {
	given, outputs := make([]*tensor.Tensor, len(x.inputs)), make([]*tensor.Tensor, len(r.Program.Body.Results))
	defer func() {
		for _, y := range slices.Concat(given, outputs) {
			if y != nil {
				_ = y.Release() // the run may have taken it
			}
		}
	}()
	operands := make([]tensor.Operand, len(given))
	for i, in := range x.inputs {
		y, err := tensor.FromBytes(in.DType, in.Shape, in.Data)
		if err != nil {
			return err.Error()
		}
		given[i], operands[i] = y, y
		switch how.inputs[i] {
		case tensor.DonateInput:
			operands[i] = y.Donate()
		case tensor.ReuseInput:
			operands[i] = y.Reuse()
		}
	}
	if how.into = how.into && x.refused == nil && x.want[0].Shape.NumElements() > 0; how.into {
		y, err := tensor.Make(memory.Process(memory.IO), x.want[0].DType, x.want[0].Shape)
		if err != nil {
			return err.Error()
		}
		outputs[0] = y
	}
	err := s.RunInto(context.Background(), operands, outputs)
	if errors.Is(err, tenure.ErrNotReusable) || how.into && errors.Is(err, tenure.ErrUnsupported) {
		r.note("not in this manner") // nothing is consumed: the inputs may be given again
		if outputs[0] != nil {
			_ = outputs[0].Release()
			outputs[0] = nil
		}
		for i := range operands {
			operands[i], how.inputs[i] = given[i], tensor.Borrow
		}
		how.into = false
		err = s.RunInto(context.Background(), operands, outputs)
	}
	if err != nil {
		if strings.Contains(err.Error(), "BUG:") || x.refused == nil && !r.refuses(x, err) {
			return fmt.Sprintf("run: %v", err)
		}
		r.note("refused")
		return ""
	}
	if x.refused != nil {
		r.note("refused by the interpreter alone") // a pass found the call dead that sizes do not fit
		return ""
	}
	r.note("compared")
	if how.into {
		r.note("into")
	}
	if fault = r.differs(x, how, given, outputs); fault != "" && r.folded(&x) {
		fault = r.differs(x, how, given, outputs)
	}
	return fault
}

// folded interprets a program with loops as the passes make it for these sizes
// alone. Of a loop of no rounds the parts have the sizes that are known, which
// are more where constants are folded. It returns false where there is no loop.
func (r *lengthRun) folded(x *met) bool {
	p, loops, types := r.Program.Clone(), false, make([]op.Type, len(x.inputs))
	p.Walk(func(_ *ir.Block, c *ir.Call) { loops = loops || c.Op.Loop })
	for i, in := range x.inputs {
		types[i] = in.Type
	}
	ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: r.Weights}, MaxFold: 1 << 16}
	if !loops || pass.Run(ctx, pass.Load, nil) != nil || p.Bind(types...) != nil || freeze(ctx, x.inputs) != nil || pass.Run(ctx, pass.Specialise, nil) != nil {
		return false
	}
	want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: ctx.Constants, MaxBytes: mostBytes}).Run(p, x.inputs...)
	x.want = want
	r.note("a loop of no rounds")
	return err == nil
}

// freeze makes constants of the inputs whose values decide sizes.
func freeze(ctx *pass.Context, inputs []op.Arg) error {
	for {
		if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
			return err
		}
		deciders := pass.Deciders(ctx)
		if len(deciders) == 0 {
			return nil
		}
		for _, v := range deciders {
			if err := pass.Freeze(ctx, v, inputs[v.Index].Data); err != nil {
				return err
			}
		}
	}
}

// refuses reports whether a model that has met no other sizes refuses the
// inputs too, because a branch that is not taken does not fit them, or parts of
// a loop of no rounds.
func (r *lengthRun) refuses(x met, want error) bool {
	regions := false
	r.Program.Walk(func(_ *ir.Block, c *ir.Call) { regions = regions || len(c.Regions) > 0 })
	if !regions || !errors.Is(want, tenure.ErrShape) {
		return false
	}
	m, err := tenure.LoadProgram(r.Program, r.Weights)
	if err != nil {
		return false
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return false
	}
	defer s.Close()
	operands := make([]tensor.Operand, len(x.inputs))
	for i, in := range x.inputs {
		y, err := tensor.FromBytes(in.DType, in.Shape, in.Data)
		if err != nil {
			return false
		}
		defer y.Release()
		operands[i] = y
	}
	outputs := make([]*tensor.Tensor, len(r.Program.Body.Results))
	err = s.RunInto(context.Background(), operands, outputs)
	for _, y := range outputs {
		if y != nil {
			_ = y.Release()
		}
	}
	r.note("refused with no other sizes")
	return errors.Is(err, tenure.ErrShape) && !strings.Contains(err.Error(), "BUG:")
}

// differs compares the outputs with the interpreter's, and the inputs with
// their earlier elements.
func (r *lengthRun) differs(x met, how manner, given, outputs []*tensor.Tensor) string {
	for i, v := range r.Program.Body.Results {
		got, want := outputs[i], x.want[i]
		alike := got.Shape() == want.Shape || got.Shape().NumElements() == 0 && got.Shape().Rank() == want.Shape.Rank() && want.Shape.NumElements() == 0 // of a loop of no rounds
		if !alike || got.DType() != want.DType {
			return fmt.Sprintf("output %d: got %s%s, want %s", i, got.DType(), got.Shape(), want.Type)
		}
		data, err := got.Use()
		if err != nil {
			return err.Error()
		}
		at := ""
		if r.Rounded[v] {
			at = roughly(want, data.Data)
		} else {
			at = bound{}.differs(want, data.Data)
		}
		data.Release()
		if at != "" {
			return fmt.Sprintf("output %d, %s: %s", i, want.Type, at)
		}
	}
	for i, y := range given {
		switch how.inputs[i] {
		case tensor.DonateInput:
			r.note("donated")
			continue
		case tensor.ReuseInput:
			r.note("reused")
			continue
		}
		data, err := y.Use()
		if err != nil {
			return err.Error()
		}
		same := bytes.Equal(data.Data, x.inputs[i].Data)
		data.Release()
		if !same {
			return fmt.Sprintf("input %d was written", i)
		}
	}
	return ""
}

// roughly compares numbers that fused kernels may have rounded in another way.
func roughly(want op.Arg, got []byte) string {
	size, largest := want.DType.Size(), 0.0
	if want.DType != dtype.F32 {
		return bound{}.differs(want, got)
	}
	for i := 0; i < len(got); i += size {
		if x := math.Abs(floatAt(want.Data[i:][:size])); x <= math.MaxFloat32 {
			largest = max(largest, x)
		}
	}
	for i := 0; i < len(got); i += size {
		x, y := floatAt(got[i:][:size]), floatAt(want.Data[i:][:size])
		if x != y && !(math.Abs(x-y) <= 1e-2*largest+1e-3) && !math.IsNaN(y) && !math.IsInf(y, 0) {
			return fmt.Sprintf("element %d: got %v, want about %v", i/size, x, y)
		}
	}
	return ""
}

// atOnce runs all sets of sizes at the same time.
func (r *lengthRun) atOnce(all []met) {
	if len(all) == 0 {
		return
	}
	faults := make([]string, 3)
	var wait sync.WaitGroup
	for g := range faults {
		wait.Go(func() {
			for i := range all {
				x := all[(i*(g+1)+g)%len(all)]
				if fault := r.run(x, r.sessions[(i+g)%2], manner{inputs: make([]tensor.CopySemantics, len(x.inputs))}); fault != "" {
					faults[g] = fmt.Sprintf("at once: %s\n%s", fault, r.describe(x))
					return
				}
			}
		})
	}
	wait.Wait()
	r.seen["at once"]++
	for _, fault := range faults {
		if fault != "" {
			r.t.Fatal(fault)
		}
	}
}

func (r *lengthRun) describe(x met) string {
	types := make([]op.Type, len(x.inputs))
	for i, in := range x.inputs {
		types[i] = in.Type
	}
	return fmt.Sprintf("%v\n%s", types, r.Program)
}
