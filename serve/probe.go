package serve

import (
	"context"
	"errors"
	"math"
	"slices"
)

// closeness is by how much logits may differ, as a part of their range, where
// the same sequences run alone and together.
const closeness = 2e-3

// probe finds out which sequences may share a run, by runs: those of the states
// know whether lengths may differ, but not whether a mask, or numbers that are
// quantised for all rows at once, make rows depend on each other. Tokens are
// below size. It returns how many logits the model has.
func (d *decoder) probe(ctx context.Context, size int) (vocabulary int, err error) {
	d.group = alone
	text := func(n, first int) []int64 {
		list := make([]int64, n)
		for i := range list {
			list[i] = int64((first + 7*i) % size)
		}
		return list
	}
	long, short, other := text(6, 1), text(4, 2), text(4, 3)
	single := func(tokens []int64) ([]float32, error) {
		l, err := d.steps(ctx, tokens)
		if err != nil {
			return nil, err
		}
		return l[0], nil
	}
	want := map[*int64][]float32{}
	for _, tokens := range [][]int64{long, short, other} {
		l, err := single(tokens)
		if err != nil {
			return 0, err // the model does not run at all
		}
		vocabulary = len(l)
		want[&tokens[0]] = slices.Clone(l)
	}
	if d.rows == 0 {
		return vocabulary, nil
	}
	for _, try := range []struct {
		mode
		texts [][]int64
	}{{mixed, [][]int64{long, short, other}}, {even, [][]int64{short, other}}} {
		l, err := d.steps(ctx, try.texts...)
		if ctx.Err() != nil {
			return 0, err
		}
		same := err == nil
		for i, tokens := range try.texts {
			same = same && alike(l[i], want[&tokens[0]])
		}
		if same {
			d.group = try.mode
			break
		}
	}
	return vocabulary, nil
}

// alike reports whether logits are the same but for rounding.
func alike(a, b []float32) bool {
	least, most := slices.Min(b), slices.Max(b)
	for i := range a {
		if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= closeness*float64(most-least)) {
			return false
		}
	}
	return true
}

// steps reads all tokens of some texts but the last one, text by text, and then
// the last ones together.
func (d *decoder) steps(ctx context.Context, texts ...[]int64) (logits [][]float32, err error) {
	var caches []cache
	defer func() {
		for _, c := range caches {
			err = errors.Join(err, c.Close())
		}
	}()
	var last [][]int64
	for _, tokens := range texts {
		c, err := d.open(len(tokens))
		if err != nil {
			return nil, err
		}
		caches = append(caches, c)
		front := len(tokens) - 1
		if _, err := d.run(ctx, []cache{c}, [][]int64{tokens[:front]}); err != nil {
			return nil, err
		}
		last = append(last, tokens[front:])
	}
	return d.run(ctx, caches, last)
}
