package lift

import (
	"fmt"
	"strconv"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// sources enters the tensors of a model's file into the store of its
// weights: where in which file they lie. Package internal/weights has their
// bytes from then on.
type sources struct {
	store     *weights.Store
	loaded    map[any]string // by the name of the first weight that each tensor became
	note      func(string)   // adds a remark on the content of the file
	sparse    int            // bytes that sparse tensors have expanded to
	maxSparse int
}

// Sparse tensors may expand to minSparse bytes, and to maxSparse bytes for each
// byte of the file.
const (
	minSparse = 64 << 20
	maxSparse = 1 << 10
)

// add enters a checked tensor under a name.
func (in *sources) add(v *ir.Value, init *initializer) error {
	var source any = init.proto
	if init.sparse != nil {
		source = init.sparse
	}
	if first, ok := in.loaded[source]; ok { // a function's body, imported once more
		return in.store.Derive(v, &ir.Value{Kind: ir.Weight, Name: first}, 0, nil)
	}
	in.loaded[source] = v.Name
	if init.sparse != nil {
		return in.addSparse(v, init)
	}
	d, err := in.located(init.proto, init.data)
	if d.HasOtherBools(d.InFile) {
		d.Odd = wire.OddBools
	}
	if d.Odd != "" {
		in.note(fmt.Sprintf("weight %q: %s", v.Name, d.Odd))
	}
	switch {
	case err != nil:
		return err
	case d.HasOtherBools(d.InFile):
		return in.store.AddConverted(v.Name, d.Type, func(dst []byte) error {
			wire.PutBools(dst, d.InFile)
			return nil
		})
	case d.InFile == nil:
		return in.store.AddConverted(v.Name, d.Type, func(dst []byte) error { return init.proto.Convert(d, dst) })
	}
	return in.store.AddInFile(v.Name, d.Type, d.InFile)
}

// located returns the data of a tensor with the bytes outside the file, if they
// lie there.
func (in *sources) located(t *wire.Tensor, d wire.TensorData) (wire.TensorData, error) {
	if t.External == nil {
		return d, nil
	}
	data, err := in.external(t.External, d.Bytes)
	if err != nil {
		return d, fmt.Errorf("tensor %q: external_data: %w", t.Name, err)
	}
	d.InFile = data
	return d, nil
}

// addSparse enters a sparse tensor with all of its elements.
func (in *sources) addSparse(v *ir.Value, init *initializer) error {
	size, err := init.listed.Type.Bytes()
	if err != nil {
		return err
	}
	if size > in.maxSparse-in.sparse {
		return fmt.Errorf("sparse tensor %q: got %s after %d bytes of other sparse tensors, want at most %d bytes of all: %w",
			init.sparse.Values.Name, init.listed.Type, in.sparse, in.maxSparse, op.ErrUnsupported)
	}
	in.sparse += size
	var parts [2][]byte
	for i, t := range []*wire.Tensor{&init.sparse.Values, &init.sparse.Indices} {
		d := []wire.TensorData{init.listed.Values, init.listed.Indices}[i]
		if d, err = in.located(t, d); err != nil {
			return err
		}
		switch {
		case d.InFile == nil:
			parts[i] = make([]byte, d.Bytes)
			if err := t.Convert(d, parts[i]); err != nil {
				return err
			}
		case d.HasOtherBools(d.InFile):
			parts[i] = make([]byte, d.Bytes)
			wire.PutBools(parts[i], d.InFile)
		default:
			parts[i] = d.InFile
		}
	}
	err = in.store.AddConverted(v.Name, init.listed.Type, func(dst []byte) error { return init.listed.Fill(dst, parts[0], parts[1]) })
	if err != nil {
		return fmt.Errorf("sparse tensor %q: %w", init.sparse.Values.Name, err)
	}
	return nil
}

// external returns the bytes of external data.
func (in *sources) external(entries []wire.Entry, size int) ([]byte, error) {
	l, err := parseLocation(entries)
	if err != nil {
		return nil, err
	}
	return in.store.External(l, size)
}

// parseLocation reads the entries of external_data.
func parseLocation(entries []wire.Entry) (l weights.Location, err error) {
	l.Length = -1
	for _, e := range entries {
		switch e.Key {
		case "location":
			l.Path = e.Value
		case "offset":
			l.Offset, err = parseSize(e)
		case "length":
			if l.Length, err = parseSize(e); l.Length == 0 {
				l.Length = -1 // as ONNX Runtime reads it: all that the tensor takes
			}
		}
		if err != nil {
			return l, err
		}
	}
	if l.Path == "" {
		return l, wire.Corruptf("location is missing")
	}
	return l, nil
}

func parseSize(e wire.Entry) (int64, error) {
	n, err := strconv.ParseInt(e.Value, 10, 64)
	if err != nil || n < 0 {
		return 0, wire.Corruptf("%s: got %q, want a number of bytes", e.Key, e.Value)
	}
	return n, nil
}

// BindTensor binds an output to a tensor of the file, which becomes a weight
// when it is first read.
func (n *Node) BindTensor(out string, t *wire.Tensor) { n.bindInit(out)(newInitializer(t)) }

// BindSparse is BindTensor for a sparse tensor.
func (n *Node) BindSparse(out string, t *wire.Sparse) { n.bindInit(out)(newSparse(t)) }

func (n *Node) bindInit(out string) func(init *initializer, err error) {
	return func(init *initializer, err error) {
		if n.Err = err; err == nil {
			n.Values[out] = &Binding{init: init}
		}
	}
}
