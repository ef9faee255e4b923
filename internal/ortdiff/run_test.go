package ortdiff_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// broken is a fault of Tenure's own: a panic, or runs that do not agree.
type broken struct{ text string }

func (b *broken) Error() string { return b.text }

// run gives the outputs of a model by name, as three ways of running it agree
// on them: the two planned ones to the last bit, eager within the tolerance,
// since a plan may have weights in another form and fuse calls.
func (m *model) run(file []byte, tol tolerance) (out map[string]*value, err error) {
	defer func() {
		if p := recover(); p != nil {
			text := fmt.Sprintf("panic: %v\n%s", p, debug.Stack())
			err = &broken{text[:min(len(text), 3000)]}
		}
	}()
	loaded, err := tenure.LoadBytes(file)
	if err != nil {
		return nil, err
	}
	defer loaded.Close()
	s, err := loaded.NewSession(tenure.WithThreads(2))
	if err != nil {
		return nil, err
	}
	defer s.Close()
	first, err := m.session(s, func(t *tensor.Tensor) tensor.Operand { return t })
	if err != nil {
		return nil, err
	}
	second, err := m.session(s, func(t *tensor.Tensor) tensor.Operand { return t.Reuse() })
	if err != nil {
		return nil, &broken{fmt.Sprintf("with inputs given up: %v", err)}
	}
	if diff := different(first, second); diff != "" {
		return nil, &broken{"with inputs given up: " + diff}
	}
	third, err := m.eager(file)
	if err != nil {
		return nil, &broken{fmt.Sprintf("eager: %v", err)}
	}
	if third == nil {
		return first, nil
	}
	for name, v := range first {
		if diff := tol.apart(third[name], v, scale(append([]*value{v}, m.values...)...)); diff != "" {
			return nil, &broken{"eager against planned: " + name + ": " + diff}
		}
	}
	return first, nil
}

// different says where two sets of outputs are not the same bits.
func different(want, got map[string]*value) string {
	for name, w := range want {
		if g := got[name]; !bytes.Equal(w.data, g.data) || fmt.Sprint(w.dt, w.dims) != fmt.Sprint(g.dt, g.dims) {
			return fmt.Sprintf("output %s: got %s%v %s, want %s%v %s as planned", name, g.dt, g.dims, format(g.dt, g.data), w.dt, w.dims, format(w.dt, w.data))
		}
	}
	return ""
}

func (v *value) tensor() (*tensor.Tensor, error) {
	s, err := shape.Of(v.dims...)
	if err != nil {
		return nil, err
	}
	if v.dt == dtype.String {
		return tensor.OfStrings(decodeStrings(v.data), v.dims...)
	}
	return tensor.FromBytes(v.dt, s, v.data)
}

// session runs the model with inputs passed as the function says.
func (m *model) session(s *tenure.Session, pass func(*tensor.Tensor) tensor.Operand) (map[string]*value, error) {
	in := tenure.Inputs{}
	for _, v := range m.values {
		if v.constant {
			continue
		}
		x, err := v.tensor()
		if err != nil {
			return nil, err
		}
		defer x.Release() // an error where it was given up
		in[v.name] = pass(x)
	}
	results, err := s.Run(context.Background(), in)
	if err != nil {
		return nil, err
	}
	defer results.Release()
	out := map[string]*value{}
	for _, info := range s.Model().Outputs() {
		out[info.Name] = valueOf(info.Name, results[info.Name], info.Text)
	}
	listed(out)
	for _, v := range m.values {
		if x := in[v.name]; x != nil && x.Semantics() == tensor.Borrow {
			if data := valueOf(v.name, x.Tensor(), v.dt == dtype.String).data; !bytes.Equal(data, v.data) {
				return nil, &broken{fmt.Sprintf("a borrowed input was written: %s is now %s", v, format(v.dt, data))}
			}
		}
	}
	return out, nil
}

func valueOf(name string, t *tensor.Tensor, text bool) *value {
	if text {
		list, err := tensor.Strings(t)
		if err != nil {
			panic(err)
		}
		dims := t.Shape().Sizes()
		return &value{name: name, dt: dtype.String, dims: dims[:len(dims)-1], data: encodeStrings(list)}
	}
	c, _, err := t.Contiguous()
	if err != nil {
		panic(err)
	}
	defer c.Release()
	data, first := c.UnsafeBytes()
	v := &value{name: name, dt: t.DType(), dims: t.Shape().Sizes()}
	n, err := v.dt.ByteLen(t.NumElements())
	if err != nil {
		panic(err)
	}
	v.data = bytes.Clone(data[first : first+n])
	return v
}

var errRegions = errors.New("eager has no regions")

// eager runs the model's program as it was read, call by call. It gives nil for
// programs that eager cannot run.
func (m *model) eager(file []byte) (map[string]*value, error) {
	read, err := onnx.Parse(file, "", onnx.Options{})
	if err != nil {
		return nil, err
	}
	defer read.Close()
	scope := eager.NewScope()
	defer scope.Close()
	env := map[*ir.Value]*tensor.Tensor{}
	byName := map[string]*value{}
	for _, v := range m.values {
		byName[v.name] = v
	}
	for _, p := range read.Program.Body.Params {
		if env[p], err = byName[p.Name].tensor(); err != nil {
			return nil, err
		}
		defer env[p].Release()
	}
	for _, w := range read.Program.Weights {
		data, ok := ir.Known(read.Weights)(w)
		if !ok {
			return nil, fmt.Errorf("weight %s has no bytes", w)
		}
		if env[w], err = tensor.FromBytes(w.Type.DType, w.Type.Shape, data); err != nil {
			return nil, err
		}
		defer env[w].Release()
	}
	for _, c := range read.Program.Body.Calls {
		if err := call(scope, c, env); err != nil {
			if errors.Is(err, errRegions) {
				return nil, nil
			}
			return nil, err
		}
	}
	out := map[string]*value{}
	for i, r := range read.Program.Body.Results {
		declared := read.Outputs[i]
		out[declared.Name] = valueOf(declared.Name, env[r], declared.Text)
	}
	listed(out)
	return out, nil
}

// listed replaces the parts of sequences by their elements, as the reference
// names them: y[0], y[1] and so on.
func listed(out map[string]*value) {
	for name, keys := range out {
		if base, ok := strings.CutSuffix(name, ".keys"); ok && out[base+".values"] != nil {
			sortMaps(keys, out[base+".values"])
		}
	}
	for name, table := range out {
		base, ok := strings.CutSuffix(name, ".sizes")
		elements := out[base+".elements"]
		if !ok || elements == nil {
			continue
		}
		rest := elements.data
		for i, row := range slices.Collect(slices.Chunk(table.data, 8*onnx.TableWidth)) {
			numbers := int64sOf(row)
			v := &value{name: fmt.Sprintf("%s[%d]", base, i), dt: elements.dt, dims: []int{}}
			n := v.dt.Size()
			for _, size := range numbers[1 : 1+numbers[0]] {
				v.dims, n = append(v.dims, int(size)), n*int(size)
			}
			v.data, rest = rest[:n], rest[n:]
			out[v.name] = v
		}
		delete(out, name)
		delete(out, base+".elements")
	}
}

// sortMaps brings the keys of maps into the order of the reference's.
func sortMaps(keys, values *value) {
	var places []int
	if keys.dt == dtype.String {
		list := decodeStrings(keys.data)
		places = order(len(list), func(i, j int) int { return strings.Compare(list[i], list[j]) })
		keys.data = encodeStrings(permuted(list, places))
	} else {
		list := int64sOf(keys.data)
		places = order(len(list), func(i, j int) int { return cmp.Compare(list[i], list[j]) })
		keys.data = encodeInts(dtype.I64, permuted(list, places)...)
	}
	size, data := values.dt.Size(), []byte{}
	for row := range slices.Chunk(values.data, max(1, size*len(places))) {
		data = append(data, slices.Concat(permuted(slices.Collect(slices.Chunk(row, size)), places)...)...)
	}
	values.data = data
}

func order(n int, compare func(i, j int) int) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, compare)
	return places
}

func permuted[T any](list []T, places []int) []T {
	out := make([]T, len(list))
	for i, p := range places {
		out[i] = list[p]
	}
	return out
}

func int64sOf(data []byte) (list []int64) {
	for ; len(data) >= 8; data = data[8:] {
		list = append(list, int64(binary.LittleEndian.Uint64(data)))
	}
	return list
}

func call(scope *eager.Scope, c *ir.Call, env map[*ir.Value]*tensor.Tensor) error {
	if len(c.Regions) > 0 {
		return errRegions
	}
	b := eager.Call(c.Op).In(scope).Results(len(c.Results))
	for _, a := range c.Args {
		if a.Value == nil {
			b.On(nil)
			continue
		}
		b.On(env[a.Value])
	}
	for _, a := range c.Attrs {
		b.Attr(a)
	}
	ts, err := b.RunAll()
	if err != nil {
		return err
	}
	for i, r := range c.Results {
		if r != nil {
			env[r] = ts[i]
		}
	}
	return nil
}
