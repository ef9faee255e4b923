package eager_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

var (
	programs  = flag.Int("programs", 0, "how many random programs TestDifferential runs; 0 for a few")
	firstSeed = flag.Uint64("seed", 1, "the seed of the first program of TestDifferential")
)

// TestDifferential runs random programs of operations, views, donations,
// reuses, scopes and arenas against an oracle that copies everything, bit by
// bit. To see one program again: -programs 1 -seed N.
func TestDifferential(t *testing.T) {
	memorytest.Check(t)
	n := *programs
	switch {
	case n > 0:
	case testing.Short(), invariant.Race:
		n = 300
	default:
		n = 3000
	}
	var next atomic.Int64
	var group sync.WaitGroup
	var totals stepTotals
	for range runtime.GOMAXPROCS(0) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := next.Add(1) - 1; i < int64(n) && !t.Failed(); i = next.Add(1) - 1 {
				runProgram(t, *firstSeed+uint64(i), &totals)
			}
		}()
	}
	group.Wait()
	t.Logf("%d programs: %d operations, %d in place, %d donations taken and %d refused, %d views, %d failed alike",
		n, totals.calls.Load(), totals.inPlace.Load(), totals.donated.Load(), totals.refused.Load(), totals.views.Load(), totals.alike.Load())
	if n >= 300 && (totals.inPlace.Load() < int64(n)/4 || totals.donated.Load() < int64(n)/4 || totals.refused.Load() < int64(n)/10) {
		t.Error("the programs hardly put anything in place: they test nothing")
	}
}

type stepTotals struct{ calls, inPlace, donated, refused, views, alike atomic.Int64 }

// value is a tensor as the oracle knows it: elements in row-major order, in
// bytes of their own.
type value struct {
	op.Type
	data []byte
}

// variable is a tensor of the program with its expected elements.
type variable struct {
	t     *tensor.Tensor
	want  value
	owned bool // the scope's
}

type program struct {
	t      *testing.T
	seed   uint64
	r      *rand.Rand
	vars   []*variable
	scope  *eager.Scope
	totals *stepTotals
}

func runProgram(t *testing.T, seed uint64, totals *stepTotals) {
	p := &program{t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 7)), totals: totals}
	var arena *memory.Arena
	if p.r.IntN(2) == 0 {
		var err error
		if arena, err = memory.NewArena(1<<20, memory.Scratch); err != nil {
			t.Error(err)
			return
		}
	}
	for range 2 {
		p.open(arena)
		for range 4 + p.r.IntN(16) {
			p.step()
			if t.Failed() {
				return
			}
		}
		p.close()
	}
	for _, v := range p.vars {
		p.check(v)
		if err := v.t.Release(); err != nil {
			p.errorf("last release: %v", err)
		}
	}
	if arena != nil {
		if err := arena.Close(); err != nil {
			p.errorf("%v", err)
		}
	}
}

func (p *program) errorf(format string, args ...any) {
	p.t.Errorf("program %d: %s", p.seed, fmt.Sprintf(format, args...))
}

func (p *program) open(arena *memory.Arena) {
	if p.r.IntN(3) == 0 {
		p.scope = nil
		return
	}
	var options []eager.Option
	if arena != nil {
		options = append(options, eager.From(arena, eager.KeepPolicy(p.r.IntN(2))))
	}
	p.scope = eager.NewScope(options...)
}

// close ends the scope: the tensors that it owned are kept or dead.
func (p *program) close() {
	if p.scope == nil {
		return
	}
	left := p.vars[:0]
	for _, v := range p.vars {
		p.check(v)
		if v.owned && p.r.IntN(2) == 0 {
			if v.t = p.scope.Keep(v.t); v.t == nil {
				p.errorf("keep: %v", p.scope.Err())
				return
			}
			v.owned = false
		}
		if !v.owned {
			left = append(left, v)
		}
	}
	p.vars = left
	if err := p.scope.Close(); err != nil {
		p.errorf("close: %v", err)
	}
}

func (p *program) step() {
	if len(p.vars) < 3 || p.r.IntN(10) == 0 {
		p.fresh()
		return
	}
	switch n := p.r.IntN(100); {
	case n < 60:
		p.operation()
	case n < 88:
		p.view()
	case n < 94:
		p.user()
	default:
		i := p.r.IntN(len(p.vars))
		v := p.vars[i]
		p.check(v)
		if err := v.t.Release(); err != nil {
			p.errorf("release: %v", err)
		}
		p.vars = slices.Delete(p.vars, i, i+1)
	}
	if len(p.vars) > 0 {
		p.check(p.any())
	}
}

func (p *program) any() *variable { return p.vars[p.r.IntN(len(p.vars))] }

// fresh makes a tensor of small whole numbers and halves.
func (p *program) fresh() {
	dims := make([]int, p.r.IntN(4))
	for i := range dims {
		dims[i] = []int{1, 2, 3, 3, 4}[p.r.IntN(5)]
	}
	s := shape.MustOf(dims...)
	data := make([]float32, s.NumElements())
	for i := range data {
		data[i] = float32(p.r.IntN(17)-8) / 2
	}
	x, err := tensor.Of(data, dims...)
	if err != nil {
		p.errorf("of: %v", err)
		return
	}
	p.add(x, value{op.Type{DType: dtype.F32, Shape: s}, bytesOf(x)}, false)
}

func bytesOf(x *tensor.Tensor) []byte {
	data, _ := x.UnsafeBytes()
	return bytes.Clone(data)
}

func (p *program) add(x *tensor.Tensor, want value, owned bool) {
	v := &variable{x, want, owned}
	p.vars = append(p.vars, v)
	p.check(v)
}

// check compares a variable with the oracle's copy.
func (p *program) check(v *variable) {
	c, _, err := v.t.Contiguous()
	if err != nil {
		p.errorf("%s: %v", v.want.Type, err)
		return
	}
	defer c.Release()
	if got := bytesOf(c); c.DType() != v.want.DType || c.Shape() != v.want.Shape || !bytes.Equal(got, v.want.data) {
		p.errorf("got %s %v, want %s %v", c, got, v.want.Type, v.want.data)
	}
}

// pass makes v an operand in some way.
func (p *program) pass(v *variable) tensor.Operand {
	switch p.r.IntN(5) {
	case 0, 1:
		return v.t
	case 2:
		return v.t.Donate()
	}
	return v.t.Reuse()
}

// call is one operation of a program: what both sides run.
type operation struct {
	name  string
	attrs op.Attrs
	extra []value // operands behind the variables, borrowed

	results int // 0 for one
}

func ints(values ...int64) value {
	x, err := tensor.Of(values, len(values))
	if err != nil {
		panic(err)
	}
	defer x.Release()
	return value{op.Type{DType: dtype.I64, Shape: x.Shape()}, bytesOf(x)}
}

var unaries = []string{"relu", "neg", "abs", "sign", "floor", "tanh", "sigmoid", "exp", "identity", "copy", "softplus", "transpose", "non_zero"}
var binaries = []string{"add", "sub", "mul", "div", "max", "min", "matmul", "pow", "prelu", "sum", "mean"}

// choose picks an operation and how many variables it takes.
func (p *program) choose() (operation, int) {
	attr := func(name string, v any) op.Attrs { return op.Attrs{{Name: name, Value: v}} }
	switch p.r.IntN(17) {
	case 0, 1, 2, 3:
		return operation{name: unaries[p.r.IntN(len(unaries))]}, 1
	case 4, 5, 6, 7, 8:
		return operation{name: binaries[p.r.IntN(len(binaries))]}, 2
	case 9:
		return operation{name: "softmax", attrs: attr("axis", int64(p.r.IntN(3)-1))}, 1
	case 10:
		return operation{name: "reduce_sum", extra: []value{ints(int64(p.r.IntN(2)))}}, 1
	case 11:
		return operation{name: "concat", attrs: attr("axis", int64(p.r.IntN(2)))}, 2
	case 12:
		return operation{name: "gather", attrs: attr("axis", int64(0)), extra: []value{ints(int64(p.r.IntN(3)), 0)}}, 1
	case 13:
		to := []dtype.DType{dtype.F64, dtype.F16, dtype.I32, dtype.F32}[p.r.IntN(4)]
		return operation{name: "cast", attrs: attr("to", to)}, 1
	case 14:
		return operation{name: "gemm"}, 3
	case 15:
		return operation{name: "split", attrs: op.Attrs{{Name: "axis", Value: int64(p.r.IntN(2))}, {Name: "num_outputs", Value: int64(2)}}, results: 2}, 1
	}
	return operation{name: "leaky_relu", attrs: attr("alpha", 0.25)}, 1
}

func (p *program) operation() {
	o, n := p.choose()
	b := eager.Op(o.name).In(p.scope)
	scratch := eager.NewScope() // the extra operands
	defer scratch.Close()
	if p.scope == nil {
		b = eager.Op(o.name)
	}
	var vars []*variable
	var operands []tensor.Operand
	var args []value
	for range n {
		v := p.any()
		vars, args = append(vars, v), append(args, v.want)
		operands = append(operands, p.pass(v))
	}
	for _, x := range operands {
		b.On(x)
	}
	for _, x := range o.extra {
		args = append(args, x)
		b.On(scratch.Adopt(tensor.FromBytes(x.DType, x.Shape, x.data)))
	}
	if o.results > 0 {
		b.Results(o.results)
	}
	for _, a := range o.attrs {
		switch v := a.Value.(type) {
		case int64:
			b.Int(a.Name, int(v))
		case float64:
			b.Float(a.Name, v)
		case dtype.DType:
			b.DType(a.Name, v)
		}
	}
	before := make([]*byte, n)
	for i, v := range vars {
		before[i], _ = firstByte(v.t)
	}
	want, wantErr := oracle(o, args)
	ts, err := p.tolerantly(b)
	p.totals.calls.Add(1)
	p.settle(o.name, vars, operands, before, ts, err, want, wantErr)
}

func firstByte(x *tensor.Tensor) (*byte, bool) {
	data, _ := x.UnsafeBytes()
	if len(data) == 0 {
		return nil, false
	}
	return &data[0], true
}

// tolerantly runs the call, in a scope that goes on after an error.
func (p *program) tolerantly(b *eager.Builder) ([]*tensor.Tensor, error) {
	ts, err := b.RunAll()
	if err != nil && p.scope != nil {
		p.renew()
	}
	return ts, err
}

// renew replaces a scope that has an error. What it owned goes on in a scope of
// its own.
func (p *program) renew() {
	old := p.scope
	p.scope = eager.NewScope()
	for _, v := range p.vars {
		if v.owned {
			// Views hold the bytes; the scope releases its own handles.
			x, err := v.t.View()
			if err != nil {
				p.errorf("view: %v", err)
				return
			}
			v.t = p.scope.Adopt(x, nil)
		}
	}
	old.Close()
}

// settle compares what happened with what should have, and keeps the books.
func (p *program) settle(name string, vars []*variable, operands []tensor.Operand, before []*byte, ts []*tensor.Tensor, err error, want []value, wantErr error) {
	if err != nil {
		p.failed(name, vars, err, wantErr)
		return
	}
	if wantErr != nil {
		p.errorf("%s: got results, want the oracle's error %v", name, wantErr)
		return
	}
	at, _ := firstByte(ts[0])
	for i, o := range operands {
		if o.Semantics() == tensor.Borrow {
			continue
		}
		if o.Semantics() == tensor.DonateInput {
			p.totals.donated.Add(1)
			if before[i] != nil && len(want[0].data) > 0 && at != before[i] {
				p.errorf("%s: donated operand %d did not give its bytes", name, i)
			}
		}
		if before[i] != nil && at == before[i] {
			p.totals.inPlace.Add(1)
		}
		if e := vars[i].t.Release(); !errors.Is(e, tensor.ErrDonated) {
			p.errorf("%s: operand %d that was given up: got %v, want ErrDonated", name, i, e)
		}
		if k := slices.Index(p.vars, vars[i]); k >= 0 {
			p.vars = slices.Delete(p.vars, k, k+1)
		}
	}
	for k, t := range ts {
		p.add(t, want[k], p.scope != nil)
	}
}

// failed checks that a call that failed consumed nothing, and had a reason.
func (p *program) failed(name string, vars []*variable, err, wantErr error) {
	switch {
	case errors.Is(err, tensor.ErrPartlyWritten):
		p.errorf("%s: %v", name, err)
	case wantErr != nil:
		p.totals.alike.Add(1)
	case errors.Is(err, tensor.ErrShared), errors.Is(err, tensor.ErrNotReusable), errors.Is(err, tensor.ErrLayout):
		p.totals.refused.Add(1)
	default:
		p.errorf("%s: %v", name, err)
	}
	for _, v := range vars {
		p.check(v)
	}
}

// oracle runs the operation on copies, into fresh bytes.
func oracle(o operation, args []value) ([]value, error) {
	def := op.Builtin().Lookup(o.name)
	sig := &op.Sig{Def: def, Attrs: o.attrs, Results: make([]op.Type, max(1, o.results))}
	c := &op.Call{Sig: sig}
	for _, a := range args {
		sig.Args = append(sig.Args, a.Type)
		c.In = append(c.In, op.Arg{Type: a.Type, Data: bytes.Clone(a.data)})
	}
	sig.Known = func(arg int) ([]byte, bool) { return args[arg].data, true }
	if err := op.InferTypes(sig); err != nil {
		return nil, err
	}
	types, _, err := sig.Largest()
	if err != nil {
		return nil, err
	}
	for _, t := range types {
		n, err := t.Bytes()
		if err != nil {
			return nil, err
		}
		c.Out = append(c.Out, op.Arg{Type: t, Data: make([]byte, n, n+8)})
	}
	if err := compute.Eval(c); err != nil {
		return nil, err
	}
	var results []value
	for _, out := range c.Out {
		n, _ := out.Bytes() // at most the largest, which has a size
		results = append(results, value{out.Type, out.Data[:n]})
	}
	return results, nil
}

// user runs a function of its own over the elements.
func (p *program) user() {
	v := p.any()
	if v.want.DType != dtype.F32 {
		return
	}
	o := p.pass(v)
	at, _ := firstByte(v.t)
	f := func(x float32) float32 { return x*0.5 + 1 }
	run := func() (*tensor.Tensor, error) {
		if p.scope == nil {
			return eager.Map(o, f)
		}
		t := eager.MapIn(p.scope, o, f)
		if err := p.scope.Err(); err != nil {
			p.renew()
			return nil, err
		}
		return t, nil
	}
	t, err := run()
	want := value{v.want.Type, bytes.Clone(v.want.data)}
	x, _ := tensor.FromBytes(want.DType, want.Shape, want.data)
	elements, _ := tensor.Values[float32](x)
	for i := range elements {
		elements[i] = f(elements[i])
	}
	_ = x.Release()
	y, _ := tensor.Of(elements, want.Shape.Sizes()...)
	want.data = bytesOf(y)
	_ = y.Release()
	p.settle("map", []*variable{v}, []tensor.Operand{o}, []*byte{at}, []*tensor.Tensor{t}, err, []value{want}, nil)
}
