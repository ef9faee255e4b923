// Command decode generates tokens with a model that keeps keys and values of
// all tokens so far in a cache.
//
//	go run ./examples/decode
//
// The cache is donated to every run and comes back as an output in the same
// bytes, in which one row is new; the scores go into a tensor that is there
// already (tenure.Into). So a step takes no memory for tensors and copies none
// of the cache, however long it is. When the cache is full it is copied, once,
// into one of twice the capacity, and the session plans for the new shape.
//
// decode.onnx is made by make.py from random weights: its output means nothing.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

//go:embed decode.onnx
var model []byte

const heads, size = 4, 16

func main() {
	log.SetFlags(0)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	d, err := newDecoder(16)
	defer func() { err = errors.Join(err, d.close()) }()
	if err != nil {
		return err
	}
	tokens, err := d.generate(context.Background(), 1, 100)
	if err != nil {
		return err
	}
	fmt.Printf("%d tokens, cache grown %d times to %d bytes\n", len(tokens), d.grown, d.keys.NumBytes()+d.values.NumBytes())
	fmt.Printf("in the steps: %d bytes copied, %d bytes of tensors allocated\n", d.copied, d.allocated)
	return nil
}

// decoder is a model with the state of one conversation.
type decoder struct {
	model           *tenure.Model
	session         *tenure.Session
	token, position *tensor.Tensor // written before each step
	scores          *tensor.Tensor // where each step puts its scores
	keys, values    *tensor.Tensor // the cache [1,heads,capacity,size]
	length          int            // tokens in it

	planned           int // capacity that the session has a plan and an arena for
	grown             int
	copied, allocated int64 // the bytes that the plans copy in their steps, and that tensors took in steps with a plan that had run before
}

// newDecoder returns a decoder with an empty cache. The caller closes it, also
// after an error.
func newDecoder(capacity int) (d *decoder, err error) {
	d = new(decoder)
	if d.model, err = tenure.LoadBytes(model); err != nil {
		return d, err
	}
	if d.session, err = d.model.NewSession(); err != nil {
		return d, err
	}
	scores := d.model.Outputs()[0]
	if d.scores, err = tensor.New(scores.DType, scores.Shape); err != nil {
		return d, err
	}
	for _, x := range []**tensor.Tensor{&d.token, &d.position} {
		if *x, err = tensor.Zeros[int64](1); err != nil {
			return d, err
		}
	}
	for _, x := range []**tensor.Tensor{&d.keys, &d.values} {
		if *x, err = tensor.Zeros[float32](1, heads, capacity, size); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *decoder) close() error {
	var errs []error
	for _, x := range []*tensor.Tensor{d.token, d.position, d.scores, d.keys, d.values} {
		if x != nil {
			errs = append(errs, x.Release())
		}
	}
	if d.session != nil {
		errs = append(errs, d.session.Close())
	}
	if d.model != nil {
		errs = append(errs, d.model.Close())
	}
	return errors.Join(errs...)
}

// generate returns the n tokens that follow the given one, each the likeliest.
func (d *decoder) generate(ctx context.Context, token int64, n int) ([]int64, error) {
	var tokens []int64
	for len(tokens) < n {
		if d.length == d.keys.Shape().Size(2) {
			if err := d.grow(); err != nil {
				return tokens, err
			}
		}
		var err error
		if token, err = d.step(ctx, token); err != nil {
			return tokens, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// step adds a token to the cache and returns the one that follows.
func (d *decoder) step(ctx context.Context, token int64) (int64, error) {
	if err := errors.Join(set(d.token, token), set(d.position, int64(d.length))); err != nil {
		return 0, err
	}
	in := tenure.Inputs{"token": d.token, "position": d.position, "keys": d.keys.Donate(), "values": d.values.Donate()}
	p, err := d.session.PlanFor(ctx, in) // the one that Run takes; it consumes nothing
	if err != nil {
		return 0, err
	}
	for _, c := range p.Copies {
		d.copied += c.Bytes
	}
	memory.ResetPeak()
	before := memory.Stats().Total.Current
	out, err := d.session.Run(ctx, in, tenure.Into("logits", d.scores))
	if err != nil {
		return 0, err
	}
	if capacity := d.keys.Shape().Size(2); capacity == d.planned {
		d.allocated += memory.Stats().Total.Peak - before
	} else {
		d.planned = capacity // this run took the arena
	}
	d.keys, d.values = out["next_keys"], out["next_values"] // in the bytes that were donated
	d.length++
	return best(d.scores)
}

// grow doubles the capacity of the cache.
func (d *decoder) grow() error {
	capacity := d.keys.Shape().Size(2)
	for _, x := range []**tensor.Tensor{&d.keys, &d.values} {
		larger, err := eager.Pad((*x).Reuse(), 0, 0, 0, 0, 0, 0, 0, capacity, 0) // zeros behind the third axis
		if err != nil {
			return err
		}
		*x = larger
	}
	d.grown++
	return nil
}

func set(x *tensor.Tensor, v int64) error {
	w, err := tensor.Write[int64](x)
	if err != nil {
		return err
	}
	w.Data[0] = v
	w.Release()
	return nil
}

// best returns the place of the largest score.
func best(scores *tensor.Tensor) (int64, error) {
	r, err := tensor.Read[float32](scores)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	at := 0
	for i, v := range r.Data {
		if v > r.Data[at] {
			at = i
		}
	}
	return int64(at), nil
}
