package wire

import (
	"bytes"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Functions that call each other twice, or one long string among many short
// ones, would grow a small file beyond all memory.
const (
	minExpansion = 16 << 20 // bytes that a file may always expand to, roughly
	maxExpansion = 128      // and how many times its own size beyond that
)

// ExpansionLimit returns how many bytes the functions and strings in n bytes of
// a file may expand to.
func ExpansionLimit(n int) int { return minExpansion + maxExpansion*n }

// eachString calls visit with every string of a tensor's data.
func (t *Tensor) eachString(visit func(s []byte) error) error {
	m := t.message()
	for f := (field{}); m.next(&f); {
		if f.num == StringData {
			m.fault(&f, visit(f.body))
		}
	}
	return m.err
}

// textType returns the type of a tensor of strings of the given sizes: as wide
// as the longest of them.
func (t *Tensor) textType(sizes []int) (op.Type, error) {
	width := 1
	err := t.eachString(func(s []byte) error {
		width = max(width, len(s))
		if bytes.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("got a string with a NUL, which ends strings here: %w", op.ErrUnsupported)
		}
		return nil
	})
	if err != nil {
		return op.Type{}, err
	}
	s, err := shape.Of(append(sizes, width)...)
	return op.Type{DType: dtype.U8, Shape: s}, err
}

// checkText compares a head with strings, in the place of other data.
func (t *Tensor) checkText(d *TensorData, l numberLists) error {
	if t.External != nil || t.Raw != nil {
		return Corruptf("got strings outside of string_data")
	}
	// One long string makes all of them long.
	if limit := ExpansionLimit(len(t.Body)); d.Bytes > limit {
		return fmt.Errorf("got %s, which take %d bytes at the width of the longest, want at most %d: %w", d.Type.AsText(), d.Bytes, limit, op.ErrUnsupported)
	}
	count := d.Bytes / d.Type.Shape.Size(d.Type.Shape.Rank()-1)
	if other := l.others(StringData); other != "" {
		return Corruptf("got %s, want string_data", other)
	}
	if got := l[StringData].count; got != count {
		return Corruptf("string_data: got %d strings, want %d for %s", got, count, d.Type.AsText())
	}
	return nil
}

// putStrings writes the strings to dst, each filled up with zeros.
func (t *Tensor) putStrings(d TensorData, dst []byte) error {
	clear(dst)
	width := d.Type.Shape.Size(d.Type.Shape.Rank() - 1)
	return t.eachString(func(s []byte) error {
		copy(dst, s)
		dst = dst[width:]
		return nil
	})
}
