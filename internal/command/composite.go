package command

import (
	"fmt"
	"math"
	"path/filepath"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// inFile returns inputs or outputs as the model's file has them: one that is
// no tensor there takes the place of its parts.
func inFile(infos []tenure.Info) []tenure.Info {
	var list []tenure.Info
	for i, info := range infos {
		switch c := info.Of; {
		case c == nil:
			list = append(list, info)
		case i == 0 || infos[i-1].Of != c:
			list = append(list, tenure.Info{Name: c.Name, DType: c.DType, Shape: c.Shape, Text: c.Text, Of: c})
		}
	}
	return list
}

func isSequence(info tenure.Info) bool {
	c := info.Of
	return c != nil && c.Name == info.Name && (c.Kind == tenure.KindSequence || c.Kind == tenure.KindOptionalSequence)
}

// has reports whether an input has a value, or one of its parts.
func (in values) has(m *tenure.Model, info tenure.Info) bool {
	if in[info.Name] != nil {
		return true
	}
	for _, part := range m.Inputs() {
		if info.Of != nil && part.Of == info.Of && in[part.Name] != nil {
			return true
		}
	}
	return false
}

// readProto reads a message of ONNX, by the kind of the input that it is for.
func readProto(path string, info tenure.Info) (tenure.Value, string, error) {
	if info.Of != nil && info.Of.Name == info.Name {
		return tenure.ReadValue(path, info.Of)
	}
	x, own, err := tenure.ReadTensor(path)
	if err != nil {
		return nil, "", err
	}
	return x, own, nil
}

// list finds what is printed of the outputs: of a sequence its elements.
func (a *answer) list(m *tenure.Model) error {
	a.shown = tenure.Outputs{}
	add := func(k int, info tenure.Info, x *tensor.Tensor) {
		a.infos, a.from, a.shown[info.Name] = append(a.infos, info), append(a.from, k), x
	}
	parts := m.Outputs()
	for k, info := range inFile(parts) {
		c := info.Of
		switch {
		case c == nil:
			add(k, info, a.out[info.Name])
		case c.Items >= 0 || c.Kind == tenure.KindMap || c.Kind == tenure.KindMaps:
			for _, part := range parts {
				if part.Of == c {
					add(k, part, a.out[part.Name])
				}
			}
		default:
			s, err := a.out.Sequence(c.Name)
			if err != nil {
				return err
			}
			a.views = append(a.views, s...)
			for i, x := range s {
				add(k, tenure.Info{Name: fmt.Sprintf("%s[%d]", c.Name, i), DType: x.DType(), Shape: x.Shape(), Text: c.Text}, x)
			}
			switch {
			case s == nil || len(s) == 0 && c.Kind == tenure.KindOptional:
				a.empty = append(a.empty, c.String()+": absent")
			case len(s) == 0:
				a.empty = append(a.empty, c.String()+": no elements")
			}
		}
	}
	return nil
}

// release releases the outputs, and the views of them.
func (a *answer) release() error {
	if err := a.views.Release(); err != nil {
		return err
	}
	return a.out.Release()
}

// compareValue compares an output that is no tensor with output_i.pb.
func (f *runFlags) compareValue(i int, c *tenure.Composite, out tenure.Outputs) (all comparison, err error) {
	value, _, err := tenure.ReadValue(filepath.Join(f.inputsFrom, fmt.Sprintf("output_%d.pb", i)), c)
	if err != nil {
		return comparison{}, err
	}
	defer value.Release()
	var want, got tenure.Sequence
	text := c.Text
	switch v := value.(type) {
	case tenure.Map:
		m, err := out.Map(c.Name)
		if err != nil {
			return comparison{}, err
		}
		keys, err := compareKeys(m.Keys, v.Keys)
		if err != nil || !keys.Equal {
			keys.Output = c.Name
			return keys, err
		}
		want, got, text = tenure.Sequence{v.Values}, tenure.Sequence{m.Values}, false
	case *tensor.Tensor:
		want = tenure.Sequence{v}
	case tenure.Sequence:
		want = v
	}
	if got == nil {
		if got, err = out.Sequence(c.Name); err != nil {
			return comparison{}, err
		}
		defer got.Release()
	}
	all = comparison{Output: c.Name, Equal: true}
	if len(got) != len(want) || (got == nil) != (want == nil) && c.Kind == tenure.KindOptionalSequence {
		return comparison{Output: c.Name, Max: number(math.Inf(1)), Says: fmt.Sprintf("got %d elements, want %d", len(got), len(want))}, nil
	}
	for k := range want {
		var one comparison
		if text {
			one, err = compareText(got[k], want[k])
		} else {
			one, err = compare(got[k], want[k], f.rtol, f.atol)
		}
		if err != nil {
			return comparison{}, err
		}
		if all.Max = max(all.Max, one.Max); !one.Equal && all.Equal {
			all.Equal, all.Says = false, fmt.Sprintf("%s[%d]: %s", c.Name, k, one.Says)
		}
	}
	return all, nil
}

// compareKeys compares the keys of maps, which are strings or integers.
func compareKeys(got, want *tensor.Tensor) (comparison, error) {
	if want.Shape().Rank() == 2 && got.DType() == want.DType() {
		return compareText(got, want)
	}
	return compare(got, want, 0, 0)
}
