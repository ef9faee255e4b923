package eager

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Apply runs f over the elements of x in row-major order and returns the tensor
// of what f left there. f gets all of them at once and writes in place: into
// the bytes of x if x was given up and is exclusive, and else into a copy. A
// panic of f is an error.
func Apply[T dtype.Element](x tensor.Operand, f func(data []T)) (*tensor.Tensor, error) {
	return apply(nil, "apply", x, f)
}

// ApplyIn is [Apply] with a result of the scope's.
func ApplyIn[T dtype.Element](s *Scope, x tensor.Operand, f func(data []T)) *tensor.Tensor {
	return inScope(s, "apply", func() (*tensor.Tensor, error) { return apply(s, "apply", x, f) })
}

// Map returns the tensor of f of each element of x.
func Map[T dtype.Element](x tensor.Operand, f func(T) T) (*tensor.Tensor, error) {
	return apply(nil, "map", x, mapped(f))
}

// MapIn is [Map] with a result of the scope's.
func MapIn[T dtype.Element](s *Scope, x tensor.Operand, f func(T) T) *tensor.Tensor {
	return inScope(s, "map", func() (*tensor.Tensor, error) { return apply(s, "map", x, mapped(f)) })
}

func mapped[T dtype.Element](f func(T) T) func([]T) {
	return func(data []T) {
		for i, v := range data {
			data[i] = f(v)
		}
	}
}

// Zip returns the tensor of f of each pair of elements of x and y, broadcast
// together. It is in the bytes of x, or else of y, where that was given up, is
// exclusive and has the shape of the result.
func Zip[T dtype.Element](x, y tensor.Operand, f func(x, y T) T) (*tensor.Tensor, error) {
	return zip(nil, x, y, f)
}

// ZipIn is [Zip] with a result of the scope's.
func ZipIn[T dtype.Element](s *Scope, x, y tensor.Operand, f func(x, y T) T) *tensor.Tensor {
	return inScope(s, "zip", func() (*tensor.Tensor, error) { return zip(s, x, y, f) })
}

func inScope(s *Scope, name string, run func() (*tensor.Tensor, error)) *tensor.Tensor {
	if s == nil {
		return nil
	}
	if s.closed {
		s.fail(fmt.Errorf("%s: %w", name, errClosed))
	}
	if s.err != nil {
		return nil
	}
	return s.own(run())
}

// userDef declares an operator of one call: an elementwise function of operands
// of one type, which may overwrite any of them. Bytes are copied or overwritten
// by the same rules, and the same code, as for the operators of the table.
func userDef(name string, dt dtype.DType, operands int, kernel func(*op.Call) error) *op.Def {
	var rules []op.Rule
	for i := range operands {
		rules = append(rules, op.Rule{Arg: i, Kind: op.Same})
	}
	return &op.Def{
		Name: name, MinArgs: operands, MaxArgs: operands, Alias: op.Aliases(rules...), Kernel: kernel, Impure: true,
		Infer: func(s *op.Sig) error {
			for i, x := range s.Args {
				if x.DType != dt {
					return fmt.Errorf("operand %d: got %s, want elements of %s: %w", i, x, dt, tensor.ErrDType)
				}
			}
			return inferTogether(s)
		},
	}
}

// inferTogether sets result 0 to the broadcast shape of the operands.
func inferTogether(s *op.Sig) error {
	sh := s.Args[0].Shape
	for _, x := range s.Args[1:] {
		var err error
		if sh, err = shape.Broadcast(sh, x.Shape); err != nil {
			return err
		}
	}
	s.Results[0] = op.Type{DType: s.Args[0].DType, Shape: sh}
	return nil
}

// runUser runs a call that is made once: nothing of it stays in the table of
// signatures.
func runUser(s *Scope, c call) (*tensor.Tensor, error) {
	c.once = true
	return one(s, c)
}

func apply[T dtype.Element](s *Scope, name string, x tensor.Operand, f func([]T)) (*tensor.Tensor, error) {
	def := userDef(name, dtype.Of[T](), 1, func(c *op.Call) error {
		if in, out := c.In[0].Data, c.Out[0].Data; unsafe.SliceData(in) != unsafe.SliceData(out) {
			copy(out, in)
		}
		f(elements[T](c.Out[0].Data))
		return nil
	})
	return runUser(s, unary(&operator{def: def, name: tensor.NewOperation(name), user: true}, x))
}

func zip[T dtype.Element](s *Scope, x, y tensor.Operand, f func(x, y T) T) (*tensor.Tensor, error) {
	def := userDef("zip", dtype.Of[T](), 2, func(c *op.Call) error {
		a, b, out := elements[T](c.In[0].Data), elements[T](c.In[1].Data), elements[T](c.Out[0].Data)
		walk := newPairs(c.In[0].Shape.Sizes(), c.In[1].Shape.Sizes(), c.Out[0].Shape.Sizes())
		for i := range out {
			out[i] = f(a[walk.x], b[walk.y])
			walk.next()
		}
		return nil
	})
	return runUser(s, binary(&operator{def: def, name: tensor.NewOperation("zip"), user: true}, x, y))
}

func elements[T dtype.Element](data []byte) []T {
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/int(unsafe.Sizeof(zero)))
}

// pairs walks two operands, broadcast together, in row-major order of the
// result.
type pairs struct {
	x, y         int // the present elements
	sizes, index []int
	stepX, stepY []int // per axis
}

func newPairs(x, y, out []int) *pairs {
	p := &pairs{sizes: out, index: make([]int, len(out))}
	p.stepX, p.stepY = steps(x, len(out)), steps(y, len(out))
	return p
}

// steps returns the strides of a row-major operand over rank axes, 0 where it
// is broadcast.
func steps(sizes []int, rank int) []int {
	out := make([]int, rank)
	step := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] != 1 {
			out[rank-len(sizes)+i] = step
		}
		step *= sizes[i]
	}
	return out
}

func (p *pairs) next() {
	for d := len(p.sizes) - 1; d >= 0; d-- {
		p.x, p.y = p.x+p.stepX[d], p.y+p.stepY[d]
		if p.index[d]++; p.index[d] < p.sizes[d] {
			return
		}
		p.index[d] = 0
		p.x, p.y = p.x-p.stepX[d]*p.sizes[d], p.y-p.stepY[d]*p.sizes[d]
	}
}
