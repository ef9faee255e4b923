package safetensors

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor"
)

// ErrName is the kind of error about a name that a file does not have, or that
// it cannot have.
var ErrName = errors.New("no such tensor name")

// Entry is a tensor under a name.
type Entry struct {
	Name   string
	Tensor *tensor.Tensor // borrowed
}

// names are the element types' names in files.
var names = func() map[dtype.DType]string {
	m := map[dtype.DType]string{}
	for name, dt := range types {
		m[dt] = name
	}
	return m
}()

// Write writes the tensors as one file. metadata may be nil. An element type
// that the format lacks is [tensor.ErrDType].
func Write(w io.Writer, metadata map[string]string, entries ...Entry) error {
	if w == nil {
		return fmt.Errorf("safetensors: write: got no writer, want one: %w", os.ErrInvalid)
	}
	entries = slices.Clone(entries)
	for _, e := range entries {
		if err := e.check(); err != nil {
			return err
		}
	}
	slices.SortFunc(entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(b.Tensor.DType().Bits(), a.Tensor.DType().Bits()), cmp.Compare(a.Name, b.Name))
	})
	header, err := headerOf(metadata, entries)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(header)))
	_, err = out.Write(length[:])
	if err == nil {
		_, err = out.Write(header)
	}
	for _, e := range entries {
		if err == nil {
			err = e.write(out)
		}
	}
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		return fmt.Errorf("safetensors: write: %w", err)
	}
	return nil
}

// WriteFile writes the tensors into a file, which appears under its name when
// it is whole. Mappings of a file that it replaces stay valid, so the tensors
// of a file may be written back to it.
func WriteFile(path string, metadata map[string]string, entries ...Entry) error {
	return wholefile.Write(path, func(w io.Writer) error { return Write(w, metadata, entries...) })
}

func (e Entry) check() error {
	switch {
	case e.Name == "__metadata__":
		return fmt.Errorf("safetensors: write: got the name %q, which stands for the metadata: %w", e.Name, ErrName)
	case !utf8.ValidString(e.Name):
		return fmt.Errorf("safetensors: write: got the name %q, want UTF-8: %w", e.Name, ErrName)
	case e.Tensor == nil:
		return fmt.Errorf("safetensors: write: %q: got %w", e.Name, tensor.ErrNoTensor)
	case names[e.Tensor.DType()] == "":
		return fmt.Errorf("safetensors: write: %q: got elements of %s, want a type that the format has: %w", e.Name, e.Tensor.DType(), tensor.ErrDType)
	}
	return nil
}

// headerOf returns the header for the entries in their order, padded so that
// the data begins at a multiple of 8 bytes.
func headerOf(metadata map[string]string, entries []Entry) ([]byte, error) {
	header := []byte{'{'}
	add := func(name string, value any) error {
		key, err := json.Marshal(name)
		if err != nil {
			return err
		}
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if len(header) > 1 {
			header = append(header, ',')
		}
		header = append(append(append(header, key...), ':'), text...)
		return nil
	}
	if len(metadata) > 0 {
		if err := add("__metadata__", metadata); err != nil {
			return nil, fmt.Errorf("safetensors: write: %w", err)
		}
	}
	seen, at := map[string]bool{}, int64(0)
	for _, e := range entries {
		if seen[e.Name] {
			return nil, fmt.Errorf("safetensors: write: got %q a second time, want every name once: %w", e.Name, ErrName)
		}
		seen[e.Name] = true
		n, err := e.Tensor.DType().ByteLen(e.Tensor.Shape().NumElements())
		if err != nil {
			return nil, fmt.Errorf("safetensors: write: %q: %w", e.Name, err)
		}
		sizes := e.Tensor.Shape().Sizes()
		if sizes == nil {
			sizes = []int{}
		}
		entry := struct {
			DType   string   `json:"dtype"`
			Shape   []int    `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{names[e.Tensor.DType()], sizes, [2]int64{at, at + int64(n)}}
		if err := add(e.Name, entry); err != nil {
			return nil, fmt.Errorf("safetensors: write: %q: %w", e.Name, err)
		}
		at += int64(n)
	}
	header = append(header, '}')
	for len(header)%8 != 0 {
		header = append(header, ' ')
	}
	if len(header) > maxHeader {
		return nil, fmt.Errorf("safetensors: write: got a header of %d bytes, want at most %d: %w", len(header), maxHeader, tensor.ErrLimit)
	}
	return header, nil
}

func (e Entry) write(w io.Writer) error {
	c, _, err := e.Tensor.Contiguous()
	if err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	defer c.Release()
	data, err := c.Use()
	if err != nil {
		return fmt.Errorf("%q: %w", e.Name, err)
	}
	defer data.Release()
	_, err = w.Write(data.Data)
	return err
}
