package lift

import (
	"fmt"
	"strconv"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
)

// sources enters the tensors of a model's file into the store of its
// weights: where in which file they lie. Package internal/weights has their
// bytes from then on.
type sources struct {
	store  *weights.Store
	loaded map[*wire.Tensor]string // by the name of the first weight that each became
}

// add enters a checked tensor under a name.
func (in *sources) add(v *ir.Value, t *wire.Tensor, d wire.TensorData) error {
	if first, ok := in.loaded[t]; ok { // a function's body, imported once more
		return in.store.Derive(v, &ir.Value{Kind: ir.Weight, Name: first}, 0, nil)
	}
	if t.External != nil {
		data, err := in.external(t.External, d.Bytes)
		if err == nil {
			err = wire.CheckBools(d.Type, data)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: external_data: %w", t.Name, err)
		}
		d.InFile = data
	}
	in.loaded[t] = v.Name
	if d.InFile == nil {
		return in.store.AddConverted(v.Name, d.Type, func(dst []byte) error { return t.Convert(d, dst) })
	}
	return in.store.AddInFile(v.Name, d.Type, d.InFile)
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
			l.Length, err = parseSize(e)
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
func (n *Node) BindTensor(out string, t *wire.Tensor) {
	init, err := newInitializer(t)
	if n.Err = err; err == nil {
		n.Values[out] = &Binding{init: init}
	}
}
