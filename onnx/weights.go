package onnx

import (
	"fmt"
	"strconv"

	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
)

// initializers enters the tensors of a model's file into the store of its
// weights: where in which file they lie. Package internal/weights has their
// bytes from then on.
type initializers struct {
	store  *weights.Store
	loaded map[*tensorProto]string // by the name of the first weight that each became
}

// add enters a checked tensor under a name.
func (in *initializers) add(v *ir.Value, t *tensorProto, d tensorData) error {
	if first, ok := in.loaded[t]; ok { // a function's body, imported once more
		return in.store.Derive(v, &ir.Value{Kind: ir.Weight, Name: first}, 0, nil)
	}
	if t.external != nil {
		data, err := in.external(t.external, d.bytes)
		if err == nil {
			err = checkBools(d.typ, data)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: external_data: %w", t.name, err)
		}
		d.inFile = data
	}
	in.loaded[t] = v.Name
	if d.inFile == nil {
		return in.store.AddConverted(v.Name, d.typ, func(dst []byte) error { return t.convert(d, dst) })
	}
	return in.store.AddInFile(v.Name, d.typ, d.inFile)
}

// external returns the bytes of external data.
func (in *initializers) external(entries []entryProto, size int) ([]byte, error) {
	l, err := parseLocation(entries)
	if err != nil {
		return nil, err
	}
	return in.store.External(l, size)
}

// parseLocation reads the entries of external_data.
func parseLocation(entries []entryProto) (l weights.Location, err error) {
	l.Length = -1
	for _, e := range entries {
		switch e.key {
		case "location":
			l.Path = e.value
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
		return l, corruptf("location is missing")
	}
	return l, nil
}

func parseSize(e entryProto) (int64, error) {
	n, err := strconv.ParseInt(e.value, 10, 64)
	if err != nil || n < 0 {
		return 0, corruptf("%s: got %q, want a number of bytes", e.key, e.value)
	}
	return n, nil
}
