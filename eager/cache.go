package eager

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// A signature is what calls of one operator with the same attributes, operand
// types and values that decide geometry have in common: the types of the
// results, what may lie where, and tasks that are bound. Calls find theirs in a
// table, so that only the first one infers and binds. It is immutable but for
// its spare task and its place in the table.
type signature struct {
	op      *op.Def
	attrs   op.Attrs
	args    []op.Type
	results []op.Type
	layouts []*shape.Layout // of the results
	known   []constant      // operands whose values were asked for
	alias   []alias         // by operand and result: operand i, result r at i*len(results)+r
	view    int             // the operand that all results show, -1 if they are computed
	bounded bool            // the results' sizes depend on data: their types are the largest
	spare   atomic.Pointer[bound]
	older   *signature
}

type alias struct {
	kind   op.AliasKind
	offset int
}

func (s *signature) aliasOf(arg, result int) alias { return s.alias[arg*len(s.results)+result] }

// bound is a call with its task, used by one goroutine at a time.
type bound struct {
	sig     op.Sig
	call    op.Call
	task    *compute.Task
	started bool // the task has begun to write
	bounded bool // it says how large its results are
	asked   []bool
	scratch []byte // on the Go heap; larger scratch is taken for each run
}

// newBound makes a call whose operands have the given bytes.
func newBound(r *runner) *bound {
	b := &bound{asked: make([]bool, len(r.args))}
	b.sig = op.Sig{
		Def: r.call.op.def, Attrs: r.call.attrs, Args: slices.Clone(r.args), Results: make([]op.Type, r.call.results),
		Known: func(arg int) ([]byte, bool) {
			if arg >= len(b.call.In) || b.call.In[arg].IsZero() {
				return nil, false
			}
			b.asked[arg] = true
			return b.call.In[arg].Data, true
		},
	}
	b.call = op.Call{Sig: &b.sig, In: make([]op.Arg, len(r.args)), Out: make([]op.Arg, r.call.results)}
	for i, t := range r.args {
		b.call.In[i] = op.Arg{Type: t, Data: r.data[i]}
	}
	return b
}

func (b *bound) infer() error {
	if err := op.InferTypes(&b.sig); err != nil {
		return err
	}
	types, ok, err := b.sig.Largest()
	if err != nil {
		return err
	}
	for i, t := range b.sig.Results {
		if !ok && !t.IsZero() && !t.IsStatic() {
			return fmt.Errorf("%s: got a result %d of %s, whose size depends on data: %w", b.sig.Def.Name, i, t, op.ErrUnsupported)
		}
		b.call.Out[i].Type = types[i]
		b.bounded = b.bounded || t != types[i]
	}
	return nil
}

func (b *bound) bind() error {
	t, err := compute.Bind(&b.call)
	if err != nil {
		return fmt.Errorf("%s: %w", b.sig.Def.Name, err)
	}
	t.Begun = &b.started
	b.task = t
	return nil
}

// mostScratch is how many bytes of scratch a spare task may keep.
const mostScratch = 64 << 10

// run runs the task; the bytes of operands and results are set.
func (b *bound) run(done <-chan struct{}) error {
	p := pool()
	need := b.task.Scratch * p.Threads()
	if b.task.Tiles < 2 {
		p, need = alone(), b.task.Scratch
	}
	b.started = false
	switch {
	case need <= len(b.scratch):
		return p.Run(done, b.task, b.scratch)
	case need <= mostScratch:
		whole := make([]byte, need+63)
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(whole))) & 63)
		b.scratch = whole[skip : skip+need]
		return p.Run(done, b.task, b.scratch)
	}
	buf, err := memory.Alloc(need, memory.Scratch)
	if err != nil {
		return fmt.Errorf("scratch: %w", err)
	}
	defer buf.Release()
	return p.Run(done, b.task, buf.Bytes())
}

func (b *bound) forget() {
	for i := range b.call.In {
		b.call.In[i].Data = nil
	}
	for i := range b.call.Out {
		b.call.Out[i].Data = nil
	}
}

// The table has a chain of the latest signatures per slot. It is bounded,
// because signatures keep shapes and tasks alive.
const (
	slots     = 512
	mostChain = 8
)

var table [slots]atomic.Pointer[signature]

var seed = maphash.MakeSeed()

// find returns the signature of the runner's call, made now if there is none. A
// new one comes with the task that was bound on the way.
func find(r *runner) (*signature, error) {
	if r.call.once {
		return learn(r)
	}
	slot := &table[r.hash()%slots]
	first := slot.Load()
	for s := first; s != nil; s = s.older {
		if s.matches(r) {
			return s, nil
		}
	}
	s, err := learn(r)
	if err != nil {
		return nil, err
	}
	s.older = first.trimmed(mostChain - 1)
	slot.CompareAndSwap(first, s) // if another goroutine was faster, the next call of this kind tries again
	return s, nil
}

// trimmed returns a chain of at most n signatures. The chain that others walk
// stays as it is.
func (s *signature) trimmed(n int) *signature {
	length := 0
	for x := s; x != nil; x = x.older {
		length++
	}
	if length <= n {
		return s
	}
	return nil // start again: those that are in use come back with their next call
}

func learn(r *runner) (*signature, error) {
	b := newBound(r)
	if err := b.infer(); err != nil {
		return nil, err
	}
	s := &signature{op: r.call.op.def, attrs: r.call.attrs, args: b.sig.Args, view: -1, bounded: b.bounded}
	for _, out := range b.call.Out {
		s.results = append(s.results, out.Type)
	}
	s.layouts = make([]*shape.Layout, len(s.results))
	for k, t := range s.results {
		if !t.IsZero() {
			s.layouts[k] = shape.RowMajor(t.Shape)
		}
	}
	s.alias = make([]alias, len(r.args)*len(s.results))
	for i := range r.args {
		for k := range s.results {
			kind, offset := b.sig.AliasOf(i, k)
			if kind == 0 {
				kind = b.sig.AliasAlone(i, k)
			}
			s.alias[i*len(s.results)+k] = alias{kind, offset}
		}
		if s.view < 0 && !r.call.isConstant(i) && s.shows(i) {
			s.view = i
		}
	}
	if s.view < 0 {
		if err := b.bind(); err != nil {
			return nil, err
		}
	}
	for i, asked := range b.asked {
		if asked {
			s.known = append(s.known, constant{at: i, data: bytes.Clone(r.data[i])})
		}
	}
	b.forget()
	s.spare.Store(b)
	return s, nil
}

// shows reports whether every result is a part of operand i.
func (s *signature) shows(i int) bool {
	for k := range s.results {
		if s.aliasOf(i, k).kind != op.View {
			return false
		}
	}
	return true
}

func (s *signature) matches(r *runner) bool {
	if s.op != r.call.op.def || len(s.results) != r.call.results || !slices.Equal(s.args, r.args) {
		return false
	}
	if len(s.attrs)+len(r.call.attrs) > 0 && !s.attrs.Equal(r.call.attrs) {
		return false
	}
	for i := range s.known {
		if !bytes.Equal(s.known[i].data, r.data[s.known[i].at]) {
			return false
		}
	}
	return true
}

// take returns a task of the signature that no other call has.
func (s *signature) take(r *runner) (*bound, error) {
	if b := s.spare.Swap(nil); b != nil {
		return b, nil
	}
	b := newBound(r)
	if err := b.infer(); err != nil {
		return nil, err
	}
	if err := b.bind(); err != nil {
		return nil, err
	}
	return b, nil
}

func (s *signature) put(b *bound) {
	b.forget()
	s.spare.Store(b)
}

// hash mixes the operator, the operand types and the attributes. Shapes are
// interned: their addresses stand for them.
func (r *runner) hash() uint64 {
	h := mix(uint64(uintptr(unsafe.Pointer(r.call.op.def))), uint64(r.call.results))
	for _, t := range r.args {
		h = mix(h, uint64(uintptr(unsafe.Pointer(t.Shape)))^uint64(t.DType)<<56)
	}
	for _, a := range r.call.attrs {
		h = mix(h, maphash.String(seed, a.Name))
		switch v := a.Value.(type) {
		case int64:
			h = mix(h, uint64(v))
		case float64:
			h = mix(h, math.Float64bits(v))
		case string:
			h = mix(h, maphash.String(seed, v))
		case []int64:
			for _, n := range v {
				h = mix(h, uint64(n))
			}
		}
	}
	for _, c := range r.call.consts {
		h = mix(h, maphash.Bytes(seed, c.data))
	}
	return h
}

func mix(h, v uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9E3779B97F4A7C15, v^0xD1B54A32D192ED03)
	return hi ^ lo
}

var (
	pool  = sync.OnceValue(func() *compute.Pool { return compute.NewPool(threads()) })
	alone = sync.OnceValue(func() *compute.Pool { return compute.NewPool(1) })
)
