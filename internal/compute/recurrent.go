package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"rnn":  oneFloatType(recurrentOp(sequence.RNNCell)),
	"gru":  oneFloatType(recurrentOp(sequence.GRUCell)),
	"lstm": oneFloatType(recurrentOp(sequence.LSTMCell)),
})

var _ = registerPackers(map[string]packer{
	"rnn":  packedRecurrent(sequence.RNNCell),
	"gru":  packedRecurrent(sequence.GRUCell),
	"lstm": packedRecurrent(sequence.LSTMCell),
})

var _ = registerWalkers(stepsRows, "rnn", "gru", "lstm")

// stepsRows: sequences and states whose rows lie in one piece, at any distance.
// Sequences of 16-bit floats go through conversions.
func stepsRows(s *op.Sig, in, out []*shape.Layout) bool {
	for i, l := range in {
		if i != 0 && i != 5 && i != 6 && !noGaps([]*shape.Layout{l}) {
			return false
		}
	}
	return isWideFloat(s.Args[0].DType) && inRows(in) && inRows(out)
}

// cellFunc returns the function of a cell. The cell itself scales a tanh.
func cellFunc(f op.Activation) sequence.CellFunc {
	if f.Op == "scaled_tanh" {
		return sequence.CellFunc{Op: kernel.Tanh, A: f.Alpha, B: f.Beta, Scaled: true}
	}
	return sequence.CellFunc{Op: unaryNamed[f.Op], A: f.Alpha, B: f.Beta}
}

func recurrentOp(kind sequence.CellKind) binder {
	return func(c *op.Call) (Kernel, error) {
		functions, err := c.Activations()
		if err != nil {
			return nil, err
		}
		spec := sequence.Recurrent{
			Kind: kind, Reverse: c.Str("direction") == "reverse", BatchFirst: c.Int("layout") != 0, Clip: c.Float("clip"),
		}
		switch kind {
		case sequence.GRUCell:
			spec.LinearBeforeReset = c.Int("linear_before_reset") != 0
		case sequence.LSTMCell:
			spec.InputForget = c.Int("input_forget") != 0
		}
		for _, f := range functions {
			spec.Funcs = append(spec.Funcs, cellFunc(f))
		}
		bind, ok := floatOf(c.In[0].DType, newRecurrent[float32], newRecurrent[float64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(spec), nil
	}
}

type recurrent[T kernel.Float] struct {
	sequence.Recurrent
	weights [2]*shape.Shape // of W and R where they are read in panels
}

func newRecurrent[T kernel.Float](spec sequence.Recurrent) Kernel {
	_, spec.Wide = any(T(0)).(float64)
	return &recurrent[T]{Recurrent: spec}
}

// packedRecurrent reads weights in panels where both are constants.
func packedRecurrent(kind sequence.CellKind) packer {
	bind := oneFloatType(recurrentOp(kind))
	return func(_ *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		k, err := bind(c)
		r, ok := k.(*recurrent[float32])
		if ok && constants.Is(1) && constants.Is(2) && elements(&c.In[1]) > 0 && elements(&c.In[2]) > 0 {
			r.weights, r.Packed = [2]*shape.Shape{c.In[1].Shape, c.In[2].Shape}, true
		}
		return k, err
	}
}

func (k *recurrent[T]) Refill(t *Task) error {
	c := t.Call
	if k.Packed && (c.In[1].Shape != k.weights[0] || c.In[2].Shape != k.weights[1]) {
		return ErrRebind
	}
	x, r := c.In[0].Shape.Sizes(), c.In[2].Shape.Sizes()
	k.Steps, k.Batch, k.Input, k.Hidden, k.Dirs = x[0], x[1], x[2], r[2], r[0]
	if k.BatchFirst {
		k.Steps, k.Batch = x[1], x[0]
	}
	k.X, k.Y = rowSteps(c.In, 0, "sb", "bs", k.BatchFirst), rowSteps(c.Out, 0, "sdb", "bsd", k.BatchFirst)
	k.H0, k.C0 = rowSteps(c.In, 5, "db", "bd", k.BatchFirst), rowSteps(c.In, 6, "db", "bd", k.BatchFirst)
	k.H, k.C = rowSteps(c.Out, 1, "db", "bd", k.BatchFirst), rowSteps(c.Out, 2, "db", "bd", k.BatchFirst)
	k.Prepare(t.variant)
	if k.Packed && t.Forms == nil {
		k.setForms(t)
	}
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchElements()*c.In[0].DType.Size()
	return nil
}

// setForms decides the forms of the weights, which depend on their sizes alone.
func (k *recurrent[T]) setForms(t *Task) {
	v, r := t.variant, k.Recurrent
	form := func(what string, of *shape.Shape, elements int, pack func(v *kernel.Variant, dst, src []float32)) Form {
		return Form{Name: fmt.Sprintf("panels of %s weights of %s %s", what, t.Call.Def.Name, of), Bytes: 4 * elements * r.Dirs, Pack: func(dst, src []byte) {
			to, from := view[float32](dst), view[float32](src)
			for dir := range r.Dirs {
				pack(v, to[dir*elements:], from[dir*len(from)/r.Dirs:])
			}
		}}
	}
	t.setForm(1, form("input", k.weights[0], r.WElements(), r.PackW))
	t.setForm(2, form("recurrent", k.weights[1], r.RElements(), r.PackR))
}

// mostScratch: the scratch grows with every size.
func (k *recurrent[T]) mostScratch(t *Task, _ Fixed) int { return t.Scratch }

// rowSteps reads how the rows of an operand or a result with gaps lie: zero
// without any. order has a letter per axis but the last one, for steps,
// directions and samples.
func rowSteps(args []op.Arg, i int, order, batchFirst string, isBatchFirst bool) (steps sequence.RowSteps) {
	if i >= len(args) || !hasGaps(&args[i]) {
		return steps
	}
	if isBatchFirst {
		order = batchFirst
	}
	strides := args[i].Layout.Strides()
	for axis, letter := range order {
		switch letter {
		case 's':
			steps.Step = strides[axis]
		case 'd':
			steps.Dir = strides[axis]
		default:
			steps.Sample = strides[axis]
		}
	}
	return steps
}

func (k *recurrent[T]) takesStrides() bool { return true }

func (k *recurrent[T]) Start(t *Task) error {
	for i, n := range in[int32](t.Call, 4) {
		if n < 0 || int(n) > k.Steps {
			return fmt.Errorf("operand 4: got length %d for sample %d, want 0 to %d", n, i, k.Steps)
		}
	}
	return nil
}

func (k *recurrent[T]) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := sequence.RecurrentArgs[T]{
		X: in[T](c, 0), W: in[T](c, 1), R: in[T](c, 2), Bias: in[T](c, 3), Lengths: in[int32](c, 4),
		H0: in[T](c, 5), C0: in[T](c, 6), Peepholes: in[T](c, 7), Y: out[T](c, 0), H: out[T](c, 1), C: out[T](c, 2),
	}
	sequence.RecurrentTile(t.variant, &k.Recurrent, tile, &args, view[T](scratch[:k.ScratchElements()*c.In[0].DType.Size()]))
}
