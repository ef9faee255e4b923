package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/tensor"
)

// decoder is a model that continues texts, with the states of some of them.
type decoder struct {
	m       *tenure.Model
	session *tenure.Session
	inputs  []tenure.Info // other than states
	logits  string
	ours    map[string]bool // inputs and outputs that are states
	rows    int             // tokens of a block of the pool; 0 without one: each sequence has its own states
	blocks  int             // of the pool
	pool    *tenure.StatePool
	length  int         // tokens of a sequence, at most
	group   mode        // which sequences run together
	last    [][]float32 // the logits of a run
}

// mode says which sequences a run may have.
type mode int

const (
	alone mode = iota // one
	even              // several of one length
	mixed             // several of any lengths
)

// String returns "one at a time".
func (m mode) String() string {
	return [...]string{"one at a time", "those of one length together", "those of any lengths together"}[m]
}

// textInputs are the inputs that a language model may have beside states.
var textInputs = []string{"input_ids", "attention_mask", "position_ids", "token_type_ids"}

// newDecoder looks at a model that was loaded with states. The error says why
// it is no decoder of tokens.
func newDecoder(m *tenure.Model) (*decoder, error) {
	d := &decoder{m: m, ours: map[string]bool{}}
	for _, s := range m.States() {
		d.ours[s.Input], d.ours[s.Output] = true, true
	}
	for _, i := range m.Inputs() {
		if d.ours[i.Name] || strings.HasPrefix(i.Name, "states.") || i.Name == "use_cache_branch" {
			continue
		}
		if !slices.Contains(textInputs, i.Name) || i.DType != dtype.I64 && i.DType != dtype.I32 || i.Shape == nil || i.Shape.Rank() != 2 {
			return nil, fmt.Errorf("got the input %s, want input_ids, attention_mask, position_ids or token_type_ids of i64 or i32 in two dimensions, and states: %w", i, tenure.ErrUnsupported)
		}
		d.inputs = append(d.inputs, i)
	}
	if !slices.ContainsFunc(d.inputs, func(i tenure.Info) bool { return i.Name == "input_ids" }) {
		return nil, fmt.Errorf("got no input input_ids: %w", tenure.ErrUnsupported)
	}
	for _, o := range m.Outputs() {
		if !d.ours[o.Name] && o.DType.IsFloat() && o.DType.Size() <= 4 && (d.logits == "" || o.Name == "logits") {
			d.logits = o.Name
		}
	}
	if d.logits == "" {
		return nil, fmt.Errorf("got no output of logits: %w", tenure.ErrUnsupported)
	}
	return d, nil
}

// cache is the states of one sequence.
type cache interface {
	Len() int
	Close() error
}

// open begins a sequence. One without a pool has room for so many tokens.
func (d *decoder) open(tokens int) (cache, error) {
	if d.rows > 0 {
		return d.pool.NewSequence()
	}
	return d.session.NewStates(tokens)
}

// fork returns states of the same contents.
func fork(c cache) (cache, error) {
	switch c := c.(type) {
	case *tenure.StateSequence:
		return c.Fork()
	case *tenure.States:
		return c.Fork()
	}
	panic(fmt.Sprintf("BUG: a cache is a %T", c))
}

// bytes returns what the states of a sequence of so many tokens take, and of
// one that shares the blocks of the first ones with another.
func (d *decoder) bytes(tokens, shared int) int64 {
	token, fixed := d.sizes()
	if d.rows == 0 {
		return token*int64(tokens) + fixed
	}
	return token * int64(d.rows) * int64((tokens+d.rows-1)/d.rows-shared/d.rows)
}

// sizes returns the bytes of the states for each token, and those of states
// that have one size, as in a recurrent model.
func (d *decoder) sizes() (token, fixed int64) {
	for _, s := range d.m.States() {
		for _, i := range d.m.Inputs() {
			if i.Name != s.Input {
				continue
			}
			n := int64(i.DType.Size())
			for a, dim := range i.Shape.Dims() {
				skip := a == s.Axis || a == 0 // of sequences
				if d.rows > 0 {
					skip = a == 0 || a == 2 // [blocks,heads,block_rows,size]
				}
				if size, ok := dim.Size(); ok && !skip {
					n *= int64(size)
				}
			}
			if s.Axis < 0 {
				fixed += n
			} else {
				token += n
			}
		}
	}
	return token, fixed
}

// shapes are those of the inputs of a run of so many sequences, each with as
// many tokens behind so many of before.
func (d *decoder) shapes(batch, tokens, past int) tenure.Shapes {
	all := tenure.Shapes{}
	for _, i := range d.inputs {
		all[i.Name] = []int{batch, tokens}
		if i.Name == "attention_mask" {
			all[i.Name] = []int{batch, past + tokens}
		}
	}
	for _, i := range d.m.Inputs() {
		state := slices.IndexFunc(d.m.States(), func(s tenure.StateInfo) bool { return s.Input == i.Name })
		switch {
		case i.Name == "states.length" && d.rows > 0:
			all[i.Name] = []int{batch}
		case i.Name == "states.table":
			all[i.Name] = []int{batch, (d.length + d.rows - 1) / d.rows}
		case i.Name == "states.sizes":
			all[i.Name] = []int{past, 0}
		case state >= 0 && d.rows > 0:
			all[i.Name] = []int{d.blocks, i.Shape.Size(1), d.rows, i.Shape.Size(3)}
		case all[i.Name] == nil && i.Shape != nil:
			dims := make([]int, i.Shape.Rank())
			for a, dim := range i.Shape.Dims() {
				n, ok := dim.Size()
				if !ok {
					n = 1
				}
				dims[a] = n
			}
			if state >= 0 {
				if a := d.m.States()[state].Axis; a >= 0 {
					dims[a] = d.length
				}
			}
			all[i.Name] = dims
		}
	}
	return all
}

// tensors makes the inputs of a run. A mask has zeros behind the tokens of
// sequences that are shorter than others. The caller releases them.
func (d *decoder) tensors(caches []cache, tokens [][]int64) (in tenure.Inputs, err error) {
	in = tenure.Inputs{}
	n, most := len(tokens[0]), 0
	for _, c := range caches {
		most = max(most, c.Len()+n)
	}
	for _, i := range d.inputs {
		columns := n
		if i.Name == "attention_mask" {
			columns = most
		}
		list := make([]int64, 0, len(caches)*columns)
		for row, c := range caches {
			for j := range columns {
				var v int64
				switch i.Name {
				case "input_ids":
					v = tokens[row][j]
				case "position_ids":
					v = int64(c.Len() + j)
				case "attention_mask":
					if j < c.Len()+n {
						v = 1
					}
				}
				list = append(list, v)
			}
		}
		x, err := integers(i.DType, list, len(caches), columns)
		if err != nil {
			return in, err
		}
		in[i.Name] = x
	}
	return in, nil
}

// integers makes a tensor of i64 or i32.
func integers(d dtype.DType, list []int64, dims ...int) (*tensor.Tensor, error) {
	if d == dtype.I64 {
		return tensor.Of(list, dims...)
	}
	narrow := make([]int32, len(list))
	for i, v := range list {
		narrow[i] = int32(v)
	}
	return tensor.Of(narrow, dims...)
}

// run reads as many tokens of each sequence, and returns the logits of the one
// behind them, which stay until the next run. After an error the sequences are
// as they were.
func (d *decoder) run(ctx context.Context, caches []cache, tokens [][]int64) (logits [][]float32, err error) {
	in, err := d.tensors(caches, tokens)
	defer func() {
		for _, x := range in {
			err = errors.Join(err, x.Tensor().Release())
		}
	}()
	if err != nil {
		return nil, err
	}
	out, err := guarded(func() (tenure.Outputs, error) { return d.compute(ctx, caches, in) })
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Release()) }()
	return d.lastRows(out[d.logits], len(caches))
}

func (d *decoder) compute(ctx context.Context, caches []cache, in tenure.Inputs) (tenure.Outputs, error) {
	if d.rows == 0 {
		return caches[0].(*tenure.States).Run(ctx, in)
	}
	list := make([]*tenure.StateSequence, len(caches))
	for i, c := range caches {
		list[i] = c.(*tenure.StateSequence)
	}
	return d.pool.Run(ctx, list, in)
}

// lastRows returns the last row of numbers of each sequence, of
// [batch,tokens,size], or of [batch,size] where the model has no others.
func (d *decoder) lastRows(x *tensor.Tensor, batch int) ([][]float32, error) {
	s := x.Shape()
	if s.Rank() < 2 || s.Size(0) != batch || x.NumElements() == 0 {
		return nil, fmt.Errorf("got logits of the shape %s for %d sequences, want [batch,tokens,vocabulary]: %w", s, batch, tenure.ErrUnsupported)
	}
	var all []float32
	if x.DType() == dtype.F32 {
		r, err := tensor.Read[float32](x)
		if err != nil {
			return nil, err
		}
		defer r.Release()
		all = r.Data
	} else {
		var err error
		if all, err = tensor.Float32s(x); err != nil {
			return nil, err
		}
	}
	for len(d.last) < batch {
		d.last = append(d.last, nil)
	}
	size, per := s.Size(s.Rank()-1), len(all)/batch
	for i := range batch {
		d.last[i] = append(d.last[i][:0], all[(i+1)*per-size:][:size]...)
	}
	return d.last[:batch], nil
}
