package compute

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// moreTries is the number of further runs of an operator of which one must
// allocate nothing: the library behind it keeps its state in a sync.Pool, which
// the race detector empties at random.
var moreTries = map[string]int{"regex_full_match": 300}

// bytesOf returns a copy of data as aligned bytes.
func bytesOf[T any](data []T) []byte {
	var zero T
	b := aligned(len(data) * int(unsafe.Sizeof(zero)))
	if len(data) > 0 {
		copy(b, unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(b)))
	}
	return b
}

// arg returns an operand with the given elements.
func arg[T dtype.Element](data []T, dims ...int) op.Arg {
	s := shape.MustOf(dims...)
	if s.NumElements() != len(data) {
		panic(fmt.Sprintf("%d elements for %v", len(data), dims))
	}
	return op.Arg{Type: op.Type{DType: dtype.Of[T](), Shape: s}, Layout: shape.RowMajor(s), Data: bytesOf(data)}
}

func ints(data ...int64) op.Arg { return arg(data, len(data)) }

func scalar[T dtype.Element](v T) op.Arg { return arg([]T{v}) }

var absent op.Arg

// values returns n numbers from lo to hi, the same for the same seed.
func values[T float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](seed uint64, n int, lo, hi float64) []T {
	r := rand.New(rand.NewPCG(seed, 7))
	data := make([]T, n)
	for i := range data {
		data[i] = T(lo + (hi-lo)*r.Float64())
	}
	return data
}

// random returns an operand of numbers from lo to hi of any numeric type.
func random(dt dtype.DType, seed uint64, lo, hi float64, dims ...int) op.Arg {
	s := shape.MustOf(dims...)
	src := values[float64](seed, s.NumElements(), lo, hi)
	if dt.IsInt() {
		for i := range src {
			src[i] = math.Round(src[i])
		}
	}
	return fromFloats(dt, src, dims...)
}

func fromFloats(dt dtype.DType, src []float64, dims ...int) op.Arg {
	from := arg(src, dims...)
	if dt == dtype.F64 {
		return from
	}
	to := op.Arg{Type: op.Type{DType: dt, Shape: from.Shape}}
	to.Data = emptyData(to.Type)
	c := &op.Call{Sig: &op.Sig{Def: op.Builtin().Lookup("cast"), Attrs: attrs("to", dt)}, In: []op.Arg{from}, Out: []op.Arg{to}}
	if err := Eval(c); err != nil {
		panic(err)
	}
	return to
}

// floats returns the elements of any operand.
func floats(a op.Arg) []float64 {
	n := a.Shape.NumElements()
	if !a.DType.IsFloat() || a.DType.Size() < 2 {
		out := make([]float64, n)
		for i := range out {
			out[i] = float64(intAt(&a, i))
		}
		return out
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = floatAt(&a, i)
	}
	return out
}

func emptyData(t op.Type) []byte {
	n, err := t.Bytes()
	if err != nil {
		panic(err)
	}
	return aligned(n)
}

func attrs(pairs ...any) op.Attrs {
	var list []op.Attr
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		list = append(list, op.Attr{Name: pairs[i].(string), Value: v})
	}
	out, err := op.NewAttrs(list...)
	if err != nil {
		panic(err)
	}
	return out
}

// call builds a call of a built-in operator and infers its result types.
// Operands without bytes of their own are absent.
func call(t testing.TB, name string, a op.Attrs, results int, operands ...op.Arg) *op.Call {
	t.Helper()
	def := op.Builtin().Lookup(name)
	if def == nil {
		t.Fatalf("no operator %q", name)
	}
	sig := &op.Sig{Def: def, Attrs: a, Results: make([]op.Type, results)}
	for i := range operands {
		sig.Args = append(sig.Args, operands[i].Type)
	}
	sig.Known = func(i int) ([]byte, bool) { return operands[i].Data, !operands[i].IsZero() }
	if err := op.InferTypes(sig); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if def.Bound != nil {
		most, ok, err := sig.Largest()
		if err != nil || !ok {
			t.Fatalf("%s: got the bound %v (%v), want static types", name, most, err)
		}
		sig.Results = most
	}
	c := &op.Call{Sig: sig, In: operands}
	for _, r := range sig.Results {
		if !r.IsStatic() {
			t.Fatalf("%s: result type %v is not static", name, r)
		}
		c.Out = append(c.Out, op.Arg{Type: r, Layout: shape.RowMajor(r.Shape)})
	}
	return c
}

// guard is how many bytes around a result must stay as they were.
const guard = 64

func guarded(n int) (whole, data []byte) {
	whole = aligned(n + 2*guard)
	for i := range whole {
		whole[i] = 0xa5
	}
	return whole, whole[guard : guard+n : guard+n]
}

func checkGuard(t testing.TB, what string, whole []byte) {
	t.Helper()
	for i, b := range whole {
		if b != 0xa5 && (i < guard || i >= len(whole)-guard) {
			t.Fatalf("%s: byte %d around the result was written", what, i-guard)
		}
	}
}

// funcs is a kernel of functions; start and finish may be nil.
type funcs struct {
	tile          func(tile int, scratch []byte)
	start, finish func() error
}

func (k *funcs) Refill(*Task) error { return ErrRebind }

func (k *funcs) Tile(_ *Task, tile int, scratch []byte) { k.tile(tile, scratch) }

func (k *funcs) Start(*Task) error {
	if k.start == nil {
		return nil
	}
	return k.start()
}

func (k *funcs) Finish(*Task) error {
	if k.finish == nil {
		return nil
	}
	return k.finish()
}

func taskOf(c *op.Call, tiles int, k *funcs) *Task {
	t := newTask(nil, c, k)
	t.Tiles = tiles
	return t
}

func funcsOf(t *Task) *funcs { return t.Kernel.(*funcs) }

var pools = sync.OnceValue(func() []*Pool { return []*Pool{NewPool(1), NewPool(4)} })

// run runs the call and checks everything that holds for every operator: the
// same bytes from Eval and from 1 and 4 threads, nothing written around the
// results nor into operands, no allocation, and the same bytes in place
// wherever the table allows it. It returns the results.
func run(t testing.TB, c *op.Call) []op.Arg {
	t.Helper()
	name := c.Def.Name
	before := make([][]byte, len(c.In))
	for i := range c.In {
		before[i] = slices.Clone(c.In[i].Data)
	}
	unchanged := func(what string) {
		t.Helper()
		for i := range c.In {
			if !bytes.Equal(before[i], c.In[i].Data) {
				t.Fatalf("%s (%s): operand %d was written", name, what, i)
			}
		}
	}
	guards := freshResults(c)
	if err := Eval(c); err != nil {
		t.Fatalf("%v", err)
	}
	unchanged("Eval")
	if c.Def.Bound != nil {
		return bounded(t, c, guards)
	}
	want := slices.Clone(c.Out)
	for i := range guards {
		checkGuard(t, name+" (Eval)", guards[i])
	}
	same := func(what string) {
		t.Helper()
		for i := range c.Out {
			if !bytes.Equal(c.Out[i].Data, want[i].Data) {
				t.Fatalf("%s (%s): result %d differs from Eval's:\n got %v\nwant %v", name, what, i, c.Out[i].Data, want[i].Data)
			}
		}
	}
	task, err := Bind(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if task.Scratch%64 != 0 {
		t.Fatalf("%s: got %d bytes of scratch, want a multiple of 64", name, task.Scratch)
	}
	for _, p := range pools() {
		what := fmt.Sprintf("%d threads", p.Threads())
		guards := freshResults(c)
		scratchGuard, scratch := guarded(task.Scratch * p.Threads())
		once := func() {
			if err := p.Run(nil, task, scratch); err != nil {
				t.Fatalf("%s (%s): %v", name, what, err)
			}
		}
		once()
		for i := range guards {
			checkGuard(t, name+" ("+what+")", guards[i])
		}
		checkGuard(t, name+" scratch", scratchGuard)
		unchanged(what)
		same(what)
		n := fewestAllocs(2, once)
		for tries := moreTries[name]; n != 0 && tries > 0; tries-- {
			n = testing.AllocsPerRun(1, once)
		}
		if n != 0 {
			t.Fatalf("%s (%s): got %v allocations per run, want 0", name, what, n)
		}
		same(what + ", again")
	}
	inPlace(t, c, task, same)
	shifted(t, c, task, same)
	c.Out = want
	refilled(t, c)
	return want
}

// earlier has the last call that run saw of each kind: of an operator with
// attributes, element types, and operands and results that are there.
var earlier sync.Map

// refilled makes a task of the call before of the same kind one of this call.
func refilled(t testing.TB, c *op.Call) {
	t.Helper()
	kind, total := c.Def.Name+fmt.Sprint(c.Attrs), 0
	for _, side := range [2][]op.Arg{c.In, c.Out} {
		for i := range side {
			kind += " " + side[i].DType.String()
			total += len(side[i].Data)
		}
		kind += ";"
	}
	if total > 1<<20 {
		return // it would stay in memory
	}
	before, ok := earlier.Swap(kind, c)
	if !ok {
		return
	}
	old := *before.(*op.Call)
	sig := *old.Sig
	old.Sig, old.In, old.Out = &sig, slices.Clone(old.In), slices.Clone(old.Out)
	task, err := Bind(&old)
	if err != nil {
		t.Fatalf("%v", err)
	}
	sig = *c.Sig
	copy(old.In, c.In)
	copy(old.Out, c.Out)
	freshResults(&old)
	if err := task.Refill(); err != nil {
		t.Fatalf("%v", err)
	}
	if err := task.run(aligned(task.Scratch)); err != nil {
		t.Fatalf("%v", err)
	}
	for i := range c.Out {
		if !bytes.Equal(old.Out[i].Data, c.Out[i].Data) {
			t.Fatalf("%s: result %d of a task that was bound for %v differs", c.Def.Name, i, before.(*op.Call).Args)
		}
	}
}

// bounded ends run for results that the kernel sizes: it compares those of Eval
// with those of a pool. Both allocate.
func bounded(t testing.TB, c *op.Call, guards [][]byte) []op.Arg {
	t.Helper()
	name := c.Def.Name
	got := slices.Clone(c.Out)
	for i := range guards {
		if got[i].IsZero() {
			continue
		}
		checkGuard(t, name+" (Eval)", guards[i])
		n, err := got[i].Bytes()
		if err != nil || n > len(got[i].Data) {
			t.Fatalf("%s: got result %d of %v in %d bytes (%v)", name, i, got[i].Type, len(got[i].Data), err)
		}
		got[i].Data = got[i].Data[:n]
		c.Out[i] = op.Arg{Type: c.Results[i], Layout: shape.RowMajor(c.Results[i].Shape)}
	}
	guards = freshResults(c)
	task, err := Bind(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	p := pools()[1]
	if err := p.Run(nil, task, aligned(task.Scratch*p.Threads())); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for i := range c.Out {
		checkGuard(t, name+" (4 threads)", guards[i])
		if c.Out[i].IsZero() {
			continue
		}
		if c.Out[i].Type != got[i].Type || !bytes.Equal(c.Out[i].Data[:len(got[i].Data)], got[i].Data) {
			t.Fatalf("%s: result %d: got %v from a pool and %v from Eval", name, i, c.Out[i].Type, got[i].Type)
		}
	}
	return got
}

// shifted runs the call on bytes that are aligned to their elements and to
// nothing more, as in a file.
func shifted(t testing.TB, c *op.Call, task *Task, same func(string)) {
	t.Helper()
	move := func(args []op.Arg) (old [][]byte) {
		for i := range args {
			data := args[i].Data
			old = append(old, data)
			if size := args[i].DType.Size(); len(data) > 0 && size > 0 {
				args[i].Data = aligned(len(data) + size)[size:]
				copy(args[i].Data, data)
			}
		}
		return old
	}
	restore := func(args []op.Arg, old [][]byte) {
		for i := range args {
			args[i].Data = old[i]
		}
	}
	in, out := move(c.In), move(c.Out)
	if err := task.run(aligned(task.Scratch)); err != nil {
		t.Fatalf("%s (shifted): %v", c.Def.Name, err)
	}
	same("shifted")
	restore(c.In, in)
	restore(c.Out, out)
}

// freshResults allocates bytes for the results, between guards.
func freshResults(c *op.Call) (guards [][]byte) {
	for i := range c.Out {
		var whole []byte
		if !c.Out[i].IsZero() {
			n, _ := c.Out[i].Bytes()
			whole, c.Out[i].Data = guarded(n)
		}
		guards = append(guards, whole)
	}
	return guards
}

// inPlace runs the call with results in operands' bytes, one pair at a time.
func inPlace(t testing.TB, c *op.Call, task *Task, same func(string)) {
	t.Helper()
	p := pools()[1]
	scratch := aligned(task.Scratch * p.Threads())
	for i := range c.In {
		for r := range c.Out {
			if c.In[i].IsZero() || c.Out[r].IsZero() {
				continue
			}
			kind, offset := c.AliasOf(i, r)
			if kind == 0 && c.AliasAlone(i, r) == 0 {
				continue
			}
			operand, result := c.In[i].Data, c.Out[r].Data
			n := len(result)
			c.In[i].Data = bytesOf(operand)
			c.Out[r].Data = c.In[i].Data[offset : offset+n]
			if err := p.Run(nil, task, scratch); err != nil {
				t.Fatalf("%s (result %d in operand %d): %v", c.Def.Name, r, i, err)
			}
			same(fmt.Sprintf("result %d in operand %d", r, i))
			c.In[i].Data, c.Out[r].Data = operand, result
			if kind == op.Same {
				twins(t, c, task, i, r)
			}
		}
	}
}

// twins runs the call with operand i as a later operand too, with result r in
// bytes of its own and in those of both operands.
func twins(t testing.TB, c *op.Call, task *Task, i, r int) {
	t.Helper()
	p := pools()[1]
	scratch := aligned(task.Scratch * p.Threads())
	for j := i + 1; j < len(c.In); j++ {
		if kind, _ := c.AliasOf(j, r); kind != op.Same || c.In[i].Type != c.In[j].Type {
			continue
		}
		one, other, result := c.In[i].Data, c.In[j].Data, c.Out[r].Data
		c.In[j].Data, c.Out[r].Data = one, aligned(len(result))
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatalf("%s (operands %d and %d are one value): %v", c.Def.Name, i, j, err)
		}
		want := c.Out[r].Data
		c.In[i].Data = bytesOf(one)
		c.In[j].Data, c.Out[r].Data = c.In[i].Data, c.In[i].Data
		if err := p.Run(nil, task, scratch); err != nil {
			t.Fatalf("%s (result %d in operands %d and %d): %v", c.Def.Name, r, i, j, err)
		}
		if !bytes.Equal(c.Out[r].Data, want) {
			t.Fatalf("%s: result %d in the bytes of operands %d and %d, which are one value, is not that in bytes of its own", c.Def.Name, r, i, j)
		}
		c.In[i].Data, c.In[j].Data, c.Out[r].Data = one, other, result
	}
}

// eval is run for a call with one result.
func eval(t testing.TB, name string, a op.Attrs, operands ...op.Arg) op.Arg {
	t.Helper()
	return run(t, call(t, name, a, 1, operands...))[0]
}

// expect compares a result with numbers: exactly, or within a relative and
// absolute tolerance.
func expect(t testing.TB, what string, got op.Arg, dims []int, want []float64, tol float64) {
	t.Helper()
	if !slices.Equal(got.Shape.Sizes(), dims) {
		t.Fatalf("%s: got shape %v, want %v", what, got.Shape, dims)
	}
	have := floats(got)
	for i := range want {
		a, b := have[i], want[i]
		if a == b || a != a && b != b {
			continue
		}
		if tol == 0 || !(math.Abs(a-b) <= tol*(1+math.Abs(b))) {
			t.Fatalf("%s: element %d: got %v, want %v (got %.12v..., want %.12v...)", what, i, a, b, have[:min(len(have), 12)], want[:min(len(want), 12)])
		}
	}
}

// each calls f with every index tuple of the sizes, in row-major order.
func each(sizes []int, f func(index []int)) {
	index := make([]int, len(sizes))
	n := 1
	for _, s := range sizes {
		n *= s
	}
	for range n {
		f(index)
		for i := len(sizes) - 1; i >= 0; i-- {
			if index[i]++; index[i] < sizes[i] {
				break
			}
			index[i] = 0
		}
	}
}

// at reads the element of a at the index tuple, broadcast.
func at(a op.Arg, data []float64, index []int) float64 {
	sizes, strides := a.Shape.Sizes(), a.Shape.Strides()
	pos := 0
	for i := range sizes {
		if sizes[i] != 1 {
			pos += index[len(index)-len(sizes)+i] * strides[i]
		}
	}
	return data[pos]
}

// fewestAllocs is testing.AllocsPerRun, which counts the allocations of the
// whole process, at its calmest: the runtime's own goroutines may allocate
// during one try, and what f allocates it allocates in every one.
func fewestAllocs(runs int, f func()) float64 {
	n := testing.AllocsPerRun(runs, f)
	for range 9 {
		if n == 0 {
			break
		}
		n = min(n, testing.AllocsPerRun(runs, f))
	}
	return n
}
