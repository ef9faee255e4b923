package pass

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Fold re-infers every type from the known sizes and values, and computes the
// values that do not depend on the inputs' data.
//
// Requires: nothing. Guarantees: every call's result types follow from its
// operand types and constants; a call whose operands are constants is a
// constant itself unless its result would be much larger than they are; an
// `if` whose condition is a constant is replaced by its branch; `shape` and
// `size` of a value of static type are constants.
//
// Left to other passes: dead weights and calls (dce).
var Fold = Pass{Name: "fold", Doc: "infer types and compute what is constant", Run: fold}

func fold(ctx *Context) error {
	if ctx.allowance == nil {
		ctx.allowance = allowanceOf(ctx)
		if ctx.recorder != nil {
			ctx.recorder.allowance = *ctx.allowance
		}
	}
	f := folder{ctx: ctx, replaced: replacer{}}
	ctx.Suspended = nil
	if err := f.block(ctx.Program.Body); err != nil {
		return err
	}
	f.replaced.apply(ctx.Program.Body)
	return nil
}

type folder struct {
	ctx      *Context
	replaced replacer
}

// block folds the calls of a block. On an error the block is whole: the calls
// before the fault are folded, that one and those after it are as they were.
func (f *folder) block(b *ir.Block) error {
	kept := make([]*ir.Call, 0, len(b.Calls))
	for i, c := range b.Calls {
		var err error
		if kept, err = f.fold(c, kept); err != nil {
			b.Calls = append(kept, b.Calls[i:]...)
			return err
		}
	}
	b.Calls = kept
	return nil
}

// fold appends to kept what remains of a call.
func (f *folder) fold(c *ir.Call, kept []*ir.Call) ([]*ir.Call, error) {
	for i := range c.Args {
		c.Args[i].Value = f.replaced.of(c.Args[i].Value)
	}
	if branch := f.chosenBranch(c); branch != nil {
		if err := f.block(branch); err != nil {
			return kept, err
		}
		for i, r := range c.Results {
			if r != nil {
				f.replaced[r] = f.replaced.of(branch.Results[i])
			}
		}
		return append(kept, branch.Calls...), nil
	}
	fits := true
	if c.Op.Loop {
		// The types that hold in every iteration, before anything is computed
		// from them.
		for _, region := range c.Regions {
			f.replaced.apply(region)
		}
		types := f.ctx.loopTypes(c)
		err := ir.InferLoop(c, f.ctx.known)
		types.end(c, err)
		if err != nil {
			return kept, err
		}
	}
	for _, region := range c.Regions {
		if err := f.block(region); err != nil {
			if c.Op.Loop {
				return kept, err
			}
			// Not a fault yet: the condition may become known, and choose the
			// other branch.
			f.ctx.Suspended = append(f.ctx.Suspended, err)
			fits = false
		}
		for i, v := range region.Results {
			region.Results[i] = f.replaced.of(v)
		}
	}
	if !fits {
		return append(kept, c), nil
	}
	visit, folded := f.ctx.visit(c), false
	sig, err := f.infer(c)
	if err == nil {
		folded, err = f.constant(c, sig, visit)
	}
	visit.end(c, err)
	if err != nil || folded {
		return kept, err
	}
	return append(kept, c), nil
}

// chosenBranch returns the region of an `if` whose condition is known.
func (f *folder) chosenBranch(c *ir.Call) *ir.Block {
	if c.Op.Name != "if" {
		return nil
	}
	cond, ok := f.ctx.constant(c.Args[0].Value)
	if !ok || len(cond) != 1 {
		return nil
	}
	if cond[0] != 0 {
		return c.Regions[0]
	}
	return c.Regions[1]
}

func (f *folder) infer(c *ir.Call) (*op.Sig, error) {
	sig := c.Sig(f.ctx.known)
	if err := sig.Infer(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.Where(), err)
	}
	for i, r := range c.Results {
		if r != nil {
			r.Type = sig.Results[i]
		}
	}
	return sig, nil
}

// outcome is the result of folding a call whose operands are constants.
type outcome uint8

const (
	kept     outcome = iota // the call stays
	viewed                  // its results are constants that share the bytes of others
	computed                // its results are constants with bytes of their own
)

// judge decides about a call whose operands' bytes are there, and whose
// results have sizes that exist. asked says that the call was compared with
// the rest of the allowance.
func (b *allowance) judge(call *op.Call) (o outcome, asked bool) {
	var in, out int64
	for i := range call.In {
		in += int64(len(call.In[i].Data))
	}
	for i := range call.Out {
		if t := call.Out[i].Type; !t.IsZero() {
			out += bytesOf(t)
		}
	}
	switch {
	case !b.worth(call.Def.Name, in, out):
		return kept, false
	case areViews(call):
		return viewed, false
	case !b.take(call):
		return kept, true
	}
	return computed, true
}

// areViews reports whether every wanted result of the call is a view of an
// operand.
func areViews(call *op.Call) bool {
	for i := range call.Out {
		if call.Out[i].IsZero() {
			continue
		}
		arg, offset := call.Sig.ViewOf(i)
		if arg < 0 || call.In[arg].IsZero() {
			return false
		}
		n, err := call.Out[i].Type.Bytes()
		if err != nil || offset+n > len(call.In[arg].Data) {
			return false
		}
	}
	return true
}

// constant replaces the results of c by constants, if it can and should.
func (f *folder) constant(c *ir.Call, sig *op.Sig, visit *visit) (bool, error) {
	if c.Op.Impure || len(c.Regions) > 0 || !f.allKnown(c, sig) {
		return false, nil
	}
	call, err := f.call(c, sig)
	if err != nil || call != nil {
		visit.evaluates(c)
	}
	if err != nil || call == nil {
		return false, err
	}
	decided, asked := f.ctx.allowance.judge(call)
	visit.judged(call, decided, asked)
	if decided == viewed {
		if f.view(c, call, visit) {
			return true, nil
		}
		f.ctx.pin("a part of a weight that cannot be used where it lies")
		if f.ctx.allowance.take(call) {
			decided = computed
		}
	}
	if decided != computed {
		return false, nil
	}
	if _, err := compute.Bind(call); errors.Is(err, op.ErrUnsupported) {
		f.ctx.pin("a constant without a kernel")
		return false, nil // named with everything else that has no kernel when the program is compiled
	}
	made := make([]*ir.Value, len(call.Out))
	for i, r := range c.Results {
		if r == nil {
			continue
		}
		if made[i], call.Out[i].Data, err = f.ctx.newWeight(r.Name, r.Type); err != nil {
			return false, fmt.Errorf("%s: %w", c.Where(), err)
		}
	}
	if err := compute.Eval(call); err != nil {
		return false, fmt.Errorf("%s: %w", c.Where(), err)
	}
	for i, r := range c.Results {
		if r != nil {
			f.become(c, r, made[i], visit)
		}
	}
	return true, nil
}

// become makes a constant take the place of a result of c.
func (f *folder) become(c *ir.Call, r, made *ir.Value, visit *visit) {
	f.replaced[r] = made
	for _, a := range c.Args {
		if a.Value != nil && (a.Value.Kind != ir.Weight || f.ctx.varying[a.Value]) {
			f.ctx.vary(made)
		}
	}
	visit.became(r, made)
}

// allKnown reports whether the results of c follow from constants alone.
func (f *folder) allKnown(c *ir.Call, sig *op.Sig) bool {
	if c.Op.Name == "shape" || c.Op.Name == "size" {
		return sig.Args[0].IsStatic()
	}
	for _, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if !f.ctx.isKnown(a.Value) {
			return false
		}
	}
	return true
}

// call prepares the evaluation of c, without bytes for the results. It is nil
// where a size is not known.
func (f *folder) call(c *ir.Call, sig *op.Sig) (*op.Call, error) {
	call := &op.Call{Sig: sig, Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, len(c.Results))}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		if !a.Value.Type.IsStatic() {
			return nil, nil
		}
		data, _ := f.ctx.known(a.Value)
		call.In[i] = op.Arg{Type: a.Value.Type, Layout: shape.RowMajor(a.Value.Type.Shape), Data: data}
	}
	for i, t := range sig.Results {
		if c.Results[i] == nil {
			continue
		}
		if !t.IsStatic() {
			return nil, nil
		}
		if _, err := t.Bytes(); err != nil {
			return nil, fmt.Errorf("%s: %w", c.Where(), err)
		}
		call.Out[i] = op.Arg{Type: t, Layout: shape.RowMajor(t.Shape)}
	}
	return call, nil
}

// view makes the results of a view of constants share their bytes, if the
// table lets them.
func (f *folder) view(c *ir.Call, call *op.Call, visit *visit) bool {
	for i, r := range c.Results {
		if r == nil {
			continue
		}
		arg, offset := call.Sig.ViewOf(i)
		w, err := f.ctx.deriveWeight(r.Name, r.Type, c.Args[arg].Value, offset, nil)
		if err != nil {
			return false
		}
		f.become(c, r, w, visit)
	}
	return true
}

func le64(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) }
