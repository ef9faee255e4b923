package pass

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
)

// Pass is one rewrite of a program.
type Pass struct {
	Name string // as in --pass NAME
	Doc  string // one line
	Run  func(*Context) error
}

// Load are the passes that run once, when a program is read: those that do
// not depend on the inputs' sizes.
var Load = []Pass{Quantised, Fold, Dequantised, Unstack, Rows, Views, Pads, BatchNorm, CSE, DCE, Idioms, DCE, Marks}

// Specialise is the pipeline of a copy of the program for each set of input
// types: afterwards every type is static and every right to write into an
// operand is marked.
var Specialise = []Pass{Fold, Views, CSE, DCE, Pads, Idioms, Attention, DCE, Fuse, Views, DCE, Chain, Outputs, Marks, Donate}

// before says which pass runs before which, and why. A test checks the
// pipelines against it.
var before = []struct{ first, second, why string }{
	{"quantised", "fold", "weights that are folded into floats are no integers"},
	{"quantised", "batchnorm", "a bias that is folded is no integer"},
	{"quantised", "dequantised", "weights of integers that are multiplied are not expanded"},
	{"fold", "dequantised", "integers that are computed are constants"},
	{"dequantised", "batchnorm", "weights that are expanded can be scaled"},
	{"fold", "rows", "indices that are computed are constants"},
	{"fold", "unstack", "indices and axes that are computed are constants"},
	{"unstack", "rows", "a row of a transpose may be one of its operand"},
	{"rows", "views", "a view of all of its operand is none of a part"},
	{"fold", "views", "whether a view changes the type is known once types are inferred"},
	{"fold", "batchnorm", "weights are folded into weights"},
	{"fold", "pads", "the extents of a pad are constants"},
	{"views", "pads", "an identity between a pad and a convolution would hide the pattern"},
	{"pads", "fuse", "a pool is fused with its pads"},
	{"fold", "cse", "constants that fold makes are merged"},
	{"fold", "idioms", "scalars of an idiom are known as constants"},
	{"cse", "idioms", "a difference that is computed twice is one value"},
	{"dce", "idioms", "a dead reader would hide an idiom"},
	{"fold", "attention", "scalars and the shapes of repetitions are known as constants"},
	{"views", "attention", "an identity between two calls would hide the pattern"},
	{"dce", "attention", "a dead reader would hide the pattern"},
	{"attention", "fuse", "a product that is fused with its mask would hide the pattern"},
	{"attention", "chain", "a chain would hide the pattern"},
	{"cse", "dce", "merged calls are left for dce"},
	{"dce", "fuse", "a dead reader would keep a value from being fused"},
	{"views", "fuse", "an identity between two calls would hide the pattern"},
	{"fuse", "chain", "what follows a convolution belongs to it"},
	{"idioms", "chain", "a chain would hide an idiom"},
	{"dce", "chain", "a dead reader would keep a value alive"},
	{"chain", "outputs", "a chain changes which call defines a result"},
	{"fuse", "outputs", "fusing changes which call defines a result"},
	{"unstack", "marks", "elements of a stack read its operand"},
	{"pads", "marks", "what reads a padded value reads what is padded"},
	{"attention", "marks", "the call of a pattern reads the operands of its first ones"},
	{"marks", "donate", "a mark that does not hold would hide another one"},
	{"outputs", "donate", "a copy that puts an output into its own bytes decides what is a last use"},
	{"dce", "donate", "a dead reader would be a later use"},
}

// Run applies the passes in order. When check is not nil it is called after
// every pass with the pass just applied, and its error ends the run: tests
// verify the program there, and `inspect --pass` prints it.
func Run(ctx *Context, passes []Pass, check func(Pass, *ir.Program) error) error {
	for _, p := range passes {
		if err := p.Run(ctx); err != nil {
			return fmt.Errorf("pass %s: %w", p.Name, err)
		}
		if check == nil {
			continue
		}
		if err := check(p, ctx.Program); err != nil {
			return fmt.Errorf("after pass %s: %w", p.Name, err)
		}
	}
	return nil
}
