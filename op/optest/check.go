package optest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Check compares an operator with its declarations on the given cases; the
// package comment lists the checks. The error names the case and joins all
// faults.
func Check(def *op.Def, cases ...Case) error {
	if len(cases) == 0 {
		return fmt.Errorf("%s: got no cases, want one at least", def.Name)
	}
	if def.Regions > 0 {
		return fmt.Errorf("%s: got an operator with regions, want one that a kernel computes", def.Name)
	}
	var all []error
	for i, c := range cases {
		name := c.Name
		if name == "" {
			name = fmt.Sprintf("case %d", i)
		}
		if err := checkCase(def, c); err != nil {
			all = append(all, fmt.Errorf("%s: %s: %w", def.Name, name, err))
		}
	}
	return errors.Join(all...)
}

// checkCase runs all checks of one case; those of kernels need types.
func checkCase(def *op.Def, c Case) error {
	if c.Fails != "" {
		return checkFails(def, c)
	}
	s, err := signature(def, c)
	if err != nil {
		return err
	}
	errs := []error{checkRule(s)}
	fresh := run{poison: 0xa5}
	want, err := fresh.do(s, c)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	errs = append(errs, checkWant(s, c, want))
	for _, again := range []run{
		{name: "with other bytes in results and scratch", poison: 0x5a},
		{name: "with the tiles in another order", poison: 0xa5, backwards: true},
		{name: "at another place in memory", poison: 0x3c, shift: 1},
	} {
		errs = append(errs, again.compare(s, c, want))
	}
	for r := range s.Results {
		for a := range s.Args {
			kind, offset := s.AliasOf(a, r)
			if kind == 0 {
				kind = s.AliasAlone(a, r)
			}
			switch {
			case kind == op.View:
				errs = append(errs, checkView(s, c, a, r, offset, want[r]))
			case kind != 0 && !s.Args[a].IsZero():
				for _, backwards := range []bool{false, true} {
					in := run{name: fmt.Sprintf("result %d in place of operand %d (%s)", r, a, kind), poison: 0xa5, backwards: backwards, inPlace: true, arg: a, result: r, twin: -1}
					errs = append(errs, in.compare(s, c, want))
				}
			}
			if kind == op.Same {
				errs = append(errs, checkTwins(s, c, a, r))
			}
		}
	}
	errs = append(errs, checkBoxes(s, c, want), checkParts(s, c, want[0]))
	return errors.Join(errs...)
}

// checkParts holds a result that is put together of its operands against them,
// and compares calls in which one of them, or all, lie in the result.
func checkParts(s *op.Sig, c Case, want []byte) error {
	starts, end := pieces(s), 0
	var errs []error
	for i, start := range starts {
		data := c.Args[i].Data
		if start != end || len(data) > len(want)-start {
			return fmt.Errorf("operand %d is a part of the result: got %d bytes at %d of %d, want them from %d on, and inside", i, len(data), start, len(want), end)
		}
		if at := firstDifference(want[start:start+len(data)], data); at >= 0 {
			return fmt.Errorf("operand %d is a part of the result at %d: got byte %#x at %d from the kernel, want the operand's %#x", i, start, want[start+at], at, data[at])
		}
		end += len(data)
		alone := make([]int, len(starts))
		for k := range alone {
			alone[k] = -1
		}
		alone[i] = start
		errs = append(errs, run{name: fmt.Sprintf("operand %d as a part of the result", i), poison: 0xa5, parts: alone}.compare(s, c, [][]byte{want}))
	}
	if starts != nil && end != len(want) {
		return fmt.Errorf("parts of the result: got %d bytes, want its %d", end, len(want))
	}
	for _, backwards := range []bool{false, true} {
		if starts != nil {
			errs = append(errs, run{name: "all operands as parts of the result", poison: 0xa5, backwards: backwards, parts: starts}.compare(s, c, [][]byte{want}))
		}
	}
	return errors.Join(errs...)
}

// pieces returns where the bytes of each operand are in result 0. It is nil
// where they are not all of it, in one piece each.
func pieces(s *op.Sig) []int {
	list, to := s.Parts(nil), s.Results[0]
	if list == nil || to.Shape.Rank() == 0 {
		return nil
	}
	rank, sum, starts := to.Shape.Rank(), 0, make([]int, len(s.Args))
	for i := range starts {
		part, a := list[i*rank:(i+1)*rank], s.Args[i]
		if part[0] < 0 || !isPiece(a.Shape.Sizes(), to.Shape.Sizes()) {
			return nil
		}
		for d, stride := range to.Shape.Strides() {
			starts[i] += part[d] * stride * to.DType.Size()
		}
		sum += a.Shape.NumElements()
	}
	if sum != to.Shape.NumElements() {
		return nil
	}
	return starts
}

// isPiece reports whether a box of these sizes is contiguous in a value.
func isPiece(box, in []int) bool {
	whole := true // all axes behind this one
	for d := len(box) - 1; d >= 0; d-- {
		if box[d] == 0 {
			return true
		}
		if !whole && box[d] != 1 {
			return false
		}
		whole = whole && box[d] == in[d]
	}
	return true
}

// checkTwins compares calls in which operand a and a later one are the same
// value: with the result in bytes of its own, and in those of the value.
func checkTwins(s *op.Sig, c Case, a, r int) error {
	var errs []error
	for b := a + 1; b < len(s.Args); b++ {
		if kind, _ := s.AliasOf(b, r); kind != op.Same || s.Args[a] != s.Args[b] {
			continue
		}
		twins := c
		twins.Args = slices.Clone(c.Args)
		twins.Args[b] = c.Args[a]
		want, err := run{poison: 0xa5}.do(s, twins)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, backwards := range []bool{false, true} {
			in := run{name: fmt.Sprintf("result %d in place of operands %d and %d, one value", r, a, b), poison: 0xa5, backwards: backwards, inPlace: true, arg: a, result: r, twin: b}
			errs = append(errs, in.compare(s, twins, want))
		}
	}
	return errors.Join(errs...)
}

// signature infers the types of the case.
func signature(def *op.Def, c Case) (*op.Sig, error) {
	attrs, err := op.NewAttrs(c.Attrs...)
	if err != nil {
		return nil, err
	}
	s := &op.Sig{Def: def, Attrs: attrs, Results: make([]op.Type, max(c.Results, 1))}
	for i, a := range c.Args {
		if !a.IsZero() {
			if n, err := a.Bytes(); err != nil || n != len(a.Data) {
				return nil, fmt.Errorf("operand %d: got %d bytes for %s, want a static type and its bytes: %w", i, len(a.Data), a.Type, errors.Join(err, shape.ErrShape))
			}
		}
		s.Args = append(s.Args, a.Type)
	}
	s.Known = func(arg int) ([]byte, bool) {
		if arg >= len(c.Args) || c.Args[arg].IsZero() {
			return nil, false
		}
		return slices.Clone(c.Args[arg].Data), true
	}
	if err := infer(s); err != nil {
		return nil, err
	}
	if def.Bound != nil {
		most, known, err := s.Largest()
		if err != nil || !known {
			return nil, fmt.Errorf("bound: got %v from operands that are all known, want static types: %w", most, errors.Join(err, shape.ErrShape))
		}
		for r, t := range s.Results {
			if !hasRoom(t, most[r]) {
				return nil, fmt.Errorf("bound: got result %d of %s, want one that %s has room for", r, most[r], t)
			}
		}
		s.Results = most
	}
	for r, t := range s.Results {
		if !t.IsStatic() {
			return nil, fmt.Errorf("shape rule: got result %d of %s from operands that are all known, want a static type", r, t)
		}
	}
	return s, nil
}

// infer is op.InferTypes with a panic of the shape rule as an error.
func infer(s *op.Sig) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("shape rule: panics for %v: %v", s.Args, p)
		}
	}()
	if err := op.InferTypes(s); err != nil {
		return fmt.Errorf("shape rule: %w", err)
	}
	return nil
}

// checkRule calls the shape rule on calls of which less is known: the types
// that it returns must admit those that it returns when all is known.
func checkRule(s *op.Sig) error {
	var errs []error
	for _, less := range []struct {
		name string
		blur func(op.Type) op.Type
	}{
		{"unknown values", func(t op.Type) op.Type { return t }},
		{"unknown sizes", unknownSizes},
		{"unknown ranks", func(t op.Type) op.Type { return op.Type{DType: t.DType} }},
	} {
		b := &op.Sig{Def: s.Def, Attrs: s.Attrs, Results: make([]op.Type, len(s.Results))}
		for _, a := range s.Args {
			if !a.IsZero() {
				a = less.blur(a)
			}
			b.Args = append(b.Args, a)
		}
		if err := infer(b); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", less.name, err))
			continue
		}
		for r, t := range b.Results {
			if !hasRoom(t, s.Results[r]) {
				errs = append(errs, fmt.Errorf("%s: shape rule: got result %d of %s, want room for %s", less.name, r, t, s.Results[r]))
			}
		}
	}
	return errors.Join(errs...)
}

func unknownSizes(t op.Type) op.Type {
	out, err := shape.FromDims(make([]shape.Dim, t.Shape.Rank())...)
	if err != nil {
		panic("BUG: optest: " + err.Error())
	}
	return op.Type{DType: t.DType, Shape: out}
}

// hasRoom reports whether t describes the static type.
func hasRoom(t, static op.Type) bool {
	if t.DType != static.DType || t.Shape == nil {
		return t.DType == static.DType
	}
	if t.Shape.Rank() != static.Shape.Rank() {
		return false
	}
	for i, n := range static.Shape.Sizes() {
		if m, ok := t.Shape.Dim(i).Size(); ok && m != n {
			return false
		}
	}
	return true
}

// checkView holds the fresh result of a view operator against the operand's
// bytes.
func checkView(s *op.Sig, c Case, arg, result, offset int, want []byte) error {
	data := c.Args[arg].Data
	if offset < 0 || offset > len(data) || len(data)-offset < len(want) {
		return fmt.Errorf("result %d is a view of operand %d: got %d bytes at %d of %d, want them inside", result, arg, len(want), offset, len(data))
	}
	if i := firstDifference(data[offset:offset+len(want)], want); i >= 0 {
		return fmt.Errorf("result %d is a view of operand %d at %d: got byte %#x at %d from the kernel, want the operand's %#x", result, arg, offset, want[i], i, data[offset+i])
	}
	return nil
}

// firstDifference returns where two slices of one length differ, -1 if nowhere.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return -1
	}
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// A run is one execution of the kernel.
type run struct {
	name        string
	poison      byte // the content of results, scratch and the gaps between buffers
	backwards   bool // the last tile first
	shift       int  // elements between a boundary of 64 bytes and each buffer
	inPlace     bool
	arg, result int   // with inPlace: the operand whose bytes the result takes
	twin        int   // with inPlace: another operand in the same bytes, -1 for none
	parts       []int // where operands lie in result 0, by operand, -1 for those in bytes of their own
}

// compare runs the kernel and holds its results against those of the first run.
func (r run) compare(s *op.Sig, c Case, want [][]byte) error {
	got, err := r.do(s, c)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	if s.Def.Impure {
		return nil // it may give something else each time
	}
	for i := range want {
		if len(got[i]) != len(want[i]) {
			return fmt.Errorf("%s: result %d: got %d bytes, want %d as in the first run", r.name, i, len(got[i]), len(want[i]))
		}
		if at := firstDifference(got[i], want[i]); at >= 0 {
			return fmt.Errorf("%s: result %d: got byte %#x at %d, want %#x as in the first run", r.name, i, got[i][at], at, want[i][at])
		}
	}
	return nil
}

// do runs the kernel once, and checks that it wrote nothing but its results.
func (r run) do(s *op.Sig, c Case) ([][]byte, error) {
	in, out, err := r.buffers(s, c)
	if err != nil {
		return nil, err
	}
	call := &op.Call{Sig: s}
	for i, b := range in {
		call.In = append(call.In, argument(s.Args[i], b))
	}
	for i, b := range out {
		a := argument(s.Results[i], b)
		if n, err := s.Results[i].Bytes(); err == nil && r.inPlace && r.result == i {
			a.Data = a.Data[:n] // the operand may have larger elements
		}
		call.Out = append(call.Out, a)
	}
	t, err := compute.Bind(call)
	if err != nil {
		return nil, err
	}
	scratch := newBuffer(t.Scratch, 0, r.poison)
	if err := r.runTask(t, scratch.data); err != nil {
		return nil, err
	}
	if err := scratch.check("scratch"); err != nil {
		return nil, err
	}
	for i, b := range in {
		if err := b.check(fmt.Sprintf("operand %d", i)); err != nil {
			return nil, err
		}
		if at := firstDifference(b.data, c.Args[i].Data); at >= 0 && !(r.inPlace && (r.arg == i || r.twin == i)) {
			return nil, fmt.Errorf("operand %d: got byte %#x at %d after the run, want %#x as before", i, b.data[at], at, c.Args[i].Data[at])
		}
	}
	results := make([][]byte, len(out))
	for i, b := range out {
		if err := b.check(fmt.Sprintf("result %d", i)); err != nil {
			return nil, err
		}
		n, err := sizeOf(s, i, call.Out[i].Type)
		if err != nil {
			return nil, err
		}
		results[i] = b.data[:n]
	}
	return results, nil
}

// sizeOf returns how many bytes of a result the kernel wrote: all, unless the
// operator bounds it.
func sizeOf(s *op.Sig, result int, got op.Type) (int, error) {
	most := s.Results[result]
	n, err := got.Bytes()
	if err != nil {
		return 0, fmt.Errorf("result %d: %w", result, err)
	}
	if got == most {
		return n, nil
	}
	limit, err := most.Bytes()
	if err != nil {
		return 0, fmt.Errorf("result %d: %w", result, err)
	}
	if s.Def.Bound == nil || got.DType != most.DType || n > limit {
		return 0, fmt.Errorf("result %d: got %s from the kernel, want %s or, where the operator bounds it, less", result, got, most)
	}
	return n, nil
}

// buffers lays out operands and results, each between guards.
func (r run) buffers(s *op.Sig, c Case) (in, out []buffer, err error) {
	for i, a := range c.Args {
		if r.inPlace && r.twin == i {
			in = append(in, in[r.arg])
			continue
		}
		b := newBuffer(len(a.Data), r.shift*a.DType.Size(), r.poison)
		copy(b.data, a.Data)
		in = append(in, b)
	}
	for i, t := range s.Results {
		n, err := t.Bytes()
		if err != nil {
			return nil, nil, err
		}
		if r.inPlace && r.result == i {
			out = append(out, in[r.arg])
			continue
		}
		out = append(out, newBuffer(n, r.shift*t.DType.Size(), r.poison))
	}
	for i, start := range r.parts {
		if start >= 0 {
			part := out[0].data[start : start+len(c.Args[i].Data)]
			copy(part, c.Args[i].Data)
			in[i] = buffer{all: part, data: part}
		}
	}
	return in, out, nil
}

func argument(t op.Type, b buffer) op.Arg {
	if t.IsZero() {
		return op.Arg{}
	}
	return op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: b.data}
}

func (r run) runTask(t *compute.Task, scratch []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("kernel panics: %v", p)
		}
	}()
	if err := t.Start(); err != nil {
		return err
	}
	for i := range t.Tiles {
		if r.backwards && !t.InOrder() {
			i = t.Tiles - 1 - i
		}
		t.Tile(i, scratch)
	}
	return t.Finish()
}
