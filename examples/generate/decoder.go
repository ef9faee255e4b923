package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/tensor"
)

// decoder is a model with one text under way. It belongs to one goroutine.
type decoder struct {
	session *tenure.Session
	states  *tenure.States
	inputs  []string // other than states
	logits  string
	read    int // tokens since the beginning of the text
}

// newDecoder makes the decoder of a model that was loaded with states. It looks
// back on capacity tokens. The caller closes it, before the model.
func newDecoder(m *tenure.Model, capacity int) (d *decoder, err error) {
	d = new(decoder)
	if d.inputs, d.logits, err = interfaceOf(m); err != nil {
		return nil, err
	}
	if d.session, err = m.NewSession(); err != nil {
		return nil, err
	}
	if d.states, err = d.session.NewStates(capacity, tenure.WithWindow(capacity*3/4)); err != nil {
		return nil, errors.Join(err, d.session.Close())
	}
	return d, nil
}

// interfaceOf returns the inputs of a decoder that are no states, and the
// output that has the logits.
func interfaceOf(m *tenure.Model) (inputs []string, logits string, err error) {
	for _, info := range m.Outputs() {
		if logits == "" && info.DType == dtype.F32 {
			logits = info.Name
		}
	}
	ours := map[string]bool{}
	for _, s := range m.States() {
		ours[s.Input] = true
		if s.Output == logits {
			return nil, "", fmt.Errorf("got %s as the first output, want logits", logits)
		}
	}
	for _, info := range m.Inputs() {
		if ours[info.Name] || strings.HasPrefix(info.Name, "states.") {
			continue
		}
		switch info.Name {
		case "input_ids", "position_ids", "attention_mask":
		default:
			return nil, "", fmt.Errorf("got input %s, want input_ids, position_ids or attention_mask, and states", info)
		}
		if info.DType != dtype.I64 {
			return nil, "", fmt.Errorf("got input %s, want i64", info)
		}
		inputs = append(inputs, info.Name)
	}
	return inputs, logits, nil
}

func (d *decoder) close() error { return errors.Join(d.states.Close(), d.session.Close()) }

// generate goes on with a prompt for n tokens, each of which draw picks from
// the logits. It yields a token as soon as it is there; an error ends it.
func (d *decoder) generate(ctx context.Context, prompt []int64, n int, draw func(logits []float32) int64) iter.Seq2[int64, error] {
	return func(yield func(int64, error) bool) {
		next := prompt
		for range n {
			logits, err := d.next(ctx, next)
			if err != nil {
				yield(0, err)
				return
			}
			token := draw(logits)
			if !yield(token, nil) {
				return
			}
			next = []int64{token}
		}
	}
}

// next reads tokens and returns the logits of the one after them. Prompts that
// are longer than there is room for are read in parts.
func (d *decoder) next(ctx context.Context, tokens []int64) (logits []float32, err error) {
	part := d.states.Cap() / 4
	for len(tokens) > part {
		if _, err := d.step(ctx, tokens[:part]); err != nil {
			return nil, err
		}
		tokens = tokens[part:]
	}
	return d.step(ctx, tokens)
}

// step runs the model.
func (d *decoder) step(ctx context.Context, tokens []int64) (logits []float32, err error) {
	in := tenure.Inputs{}
	defer func() {
		for _, x := range in {
			err = errors.Join(err, x.Tensor().Release())
		}
	}()
	for _, name := range d.inputs {
		list := tokens
		switch name {
		case "position_ids":
			list = make([]int64, len(tokens))
			for i := range list {
				list[i] = int64(d.read + i)
			}
		case "attention_mask":
			list = make([]int64, d.states.Len()+len(tokens))
			for i := range list {
				list[i] = 1
			}
		}
		x, err := tensor.Of(list, 1, len(list))
		if err != nil {
			return nil, err
		}
		in[name] = x
	}
	out, err := d.states.Run(ctx, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Release()) }()
	d.read += len(tokens)
	r, err := tensor.Read[float32](out[d.logits])
	if err != nil {
		return nil, err
	}
	defer r.Release()
	return append(logits, r.Data[len(r.Data)-len(r.Data)/len(tokens):]...), nil
}
