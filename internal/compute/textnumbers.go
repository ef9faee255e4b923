package compute

import (
	"fmt"
	"strconv"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/text"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"number_to_string": bindNumberToString,
	"string_to_number": bindStringToNumber,
})

func bindNumberToString(c *op.Call) (Kernel, error) {
	switch c.In[0].DType {
	case dtype.I64:
		return &printNumbers[int64]{print: func(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }}, nil
	case dtype.U64:
		return &printNumbers[uint64]{print: func(dst []byte, v uint64) []byte { return strconv.AppendUint(dst, v, 10) }}, nil
	}
	return &printNumbers[float64]{print: text.AppendFloat}, nil
}

type printNumbers[T int64 | uint64 | float64] struct {
	print   func(dst []byte, v T) []byte
	numbers groups
}

func (k *printNumbers[T]) Refill(t *Task) error {
	k.numbers = groupsOf(elements(&t.Call.In[0]), 8*op.PrintedWidth)
	t.Tiles, t.Scratch = k.numbers.tiles(), op.PrintedWidth
	return nil
}

func (k *printNumbers[T]) Tile(t *Task, tile int, scratch []byte) {
	x, dst := in[T](t.Call, 0), textOf(&t.Call.Out[0], op.PrintedWidth)
	lo, hi := k.numbers.of(tile)
	for i := lo; i < hi; i++ {
		dst.Put(i, k.print(scratch[:0], x[i]))
	}
}

func bindStringToNumber(c *op.Call) (Kernel, error) {
	switch c.Out[0].DType {
	case dtype.I64:
		return &parseNumbers[int64]{texts: texts{work: 16}, parse: text.ParseInt}, nil
	case dtype.U64:
		return &parseNumbers[uint64]{texts: texts{work: 16}, parse: text.ParseUint}, nil
	}
	return &parseNumbers[float64]{texts: texts{work: 16}, parse: text.ParseFloat}, nil
}

type parseNumbers[T int64 | uint64 | float64] struct {
	texts
	parse func(s []byte) (T, error)
}

// Start reads all strings once, since tiles return no errors.
func (k *parseNumbers[T]) Start(t *Task) error {
	x := textOf(&t.Call.In[0], k.width)
	for i := range elements(&t.Call.In[0]) / k.width {
		if _, err := k.parse(x.At(i)); err != nil {
			return fmt.Errorf("string %d: %w", i, err)
		}
	}
	return nil
}

func (k *parseNumbers[T]) Tile(t *Task, tile int, _ []byte) {
	x, dst := textOf(&t.Call.In[0], k.width), out[T](t.Call, 0)
	lo, hi := k.strings.of(tile)
	for i := lo; i < hi; i++ {
		dst[i], _ = k.parse(x.At(i)) // Start has found no fault
	}
}
