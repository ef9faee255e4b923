package command

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// comparison is one output against its reference.
type comparison struct {
	Output string `json:"output"`
	Equal  bool   `json:"equal"`
	Max    number `json:"max_difference"`
	Says   string `json:"says,omitempty"`
}

// compareAll compares the outputs with output_0.pb, ... beside the inputs.
func (f *runFlags) compareAll(m *tenure.Model, out tenure.Outputs) ([]comparison, error) {
	var all []comparison
	for i, info := range inFile(m.Outputs()) {
		if info.Of != nil {
			c, err := f.compareValue(i, info.Of, out)
			if err != nil {
				return nil, fmt.Errorf("output %q: %w", info.Name, err)
			}
			all = append(all, c)
			continue
		}
		want, _, err := tenure.ReadTensor(filepath.Join(f.inputsFrom, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", info.Name, err)
		}
		var c comparison
		if info.Text {
			c, err = compareText(out[info.Name], want)
		} else {
			c, err = compare(out[info.Name], want, f.rtol, f.atol)
		}
		_ = want.Release() // it has no other holder
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", info.Name, err)
		}
		c.Output = info.Name
		all = append(all, c)
	}
	return all, nil
}

// compare holds |got-want| <= atol + rtol*|want| for every element of floats;
// others must be equal.
func compare(got, want *tensor.Tensor, rtol, atol float64) (comparison, error) {
	if got.DType() != want.DType() || got.Shape() != want.Shape() {
		return comparison{Max: number(math.Inf(1)), Says: fmt.Sprintf("got %s%s, want %s%s", got.DType(), got.Shape(), want.DType(), want.Shape())}, nil
	}
	if !got.DType().IsFloat() {
		rtol, atol = 0, 0
	}
	a, err := tensor.Float64s(got)
	if err != nil {
		return comparison{}, err
	}
	b, err := tensor.Float64s(want)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{Equal: true}
	for i := range a {
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			continue
		}
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) {
			d = math.Inf(1)
		}
		if !(d <= atol+rtol*math.Abs(b[i])) && c.Equal {
			c.Equal, c.Says = false, fmt.Sprintf("element %d: got %g, want %g", i, a[i], b[i])
		}
		c.Max = max(c.Max, number(d))
	}
	return c, nil
}

// compareText holds two tensors of strings to the same strings, in bytes of
// whatever width.
func compareText(got, want *tensor.Tensor) (comparison, error) {
	a, err := tensor.Strings(got)
	if err != nil {
		return comparison{}, err
	}
	b, err := tensor.Strings(want)
	if err != nil {
		return comparison{}, err
	}
	dims := func(x *tensor.Tensor) []int { return x.Shape().Sizes()[:x.Shape().Rank()-1] }
	if !slices.Equal(dims(got), dims(want)) {
		return comparison{Max: number(math.Inf(1)), Says: fmt.Sprintf("got strings %v, want %v", dims(got), dims(want))}, nil
	}
	for i := range a {
		if a[i] != b[i] {
			return comparison{Max: number(math.Inf(1)), Says: fmt.Sprintf("element %d: got %q, want %q", i, a[i], b[i])}, nil
		}
	}
	return comparison{Equal: true}, nil
}

// verdict is the error of a run whose outputs differ from the expected ones.
func (a *answer) verdict() error {
	var bad []string
	for _, c := range a.compared {
		if !c.Equal {
			bad = append(bad, fmt.Sprintf("%s: %s", c.Output, c.Says))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d outputs differ from the reference: %s", len(bad), len(a.compared), strings.Join(bad, "; "))
}
