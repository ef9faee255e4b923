package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// maxHeader is the most bytes of a header, by the format.
const maxHeader = 100_000_000

// types are the element types of the format by their names in files.
var types = map[string]dtype.DType{
	"BOOL": dtype.Bool, "U8": dtype.U8, "I8": dtype.I8, "U16": dtype.U16, "I16": dtype.I16,
	"U32": dtype.U32, "I32": dtype.I32, "U64": dtype.U64, "I64": dtype.I64,
	"F16": dtype.F16, "BF16": dtype.BF16, "F32": dtype.F32, "F64": dtype.F64, "C64": dtype.C64,
	"F8_E5M2": dtype.F8E5M2, "F8_E4M3": dtype.F8E4M3FN, "F8_E8M0": dtype.F8E8M0, "F4": dtype.F4E2M1,
	"F6_E2M3": dtype.F6E2M3FN, "F6_E3M2": dtype.F6E3M2FN,
}

// Info describes a tensor of a file.
type Info struct {
	Name  string
	Type  string      // as the file names it
	DType dtype.DType // Invalid for a type that this package does not know
	Shape *shape.Shape

	begin, end int64 // within the data
}

// Bytes is how many bytes the tensor takes in the file.
func (i Info) Bytes() int64 { return i.end - i.begin }

func corrupt(format string, args ...any) error {
	return fmt.Errorf("safetensors: "+format+": %w", append(args, tensor.ErrCorrupt)...)
}

// parse reads the header of a file and returns where its data begins.
func parse(file []byte) (infos []Info, metadata map[string]string, data int64, err error) {
	if len(file) < 8 {
		return nil, nil, 0, corrupt("got %d bytes, want 8 with the length of the header", len(file))
	}
	n := binary.LittleEndian.Uint64(file)
	if n > maxHeader {
		return nil, nil, 0, corrupt("header: got a length of %d bytes, want at most %d", n, maxHeader)
	}
	if n > uint64(len(file)-8) {
		return nil, nil, 0, corrupt("header: got a length of %d bytes, want at most the %d that follow", n, len(file)-8)
	}
	header := file[8 : 8+n]
	if len(header) == 0 || header[0] != '{' {
		return nil, nil, 0, corrupt("header: got no object, want one that begins with {")
	}
	if !utf8.Valid(header) {
		return nil, nil, 0, corrupt("header: got bytes that are no UTF-8")
	}
	d := &decoder{json.NewDecoder(bytes.NewReader(header))}
	d.UseNumber()
	if infos, metadata, err = d.header(); err != nil {
		return nil, nil, 0, err
	}
	data = int64(8 + n)
	return infos, metadata, data, covers(infos, int64(len(file))-data)
}

// covers holds the tensors to the data: each takes the bytes of its type, and
// together they take all, each once. It sorts them by place.
func covers(infos []Info, size int64) error {
	slices.SortStableFunc(infos, func(a, b Info) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end)) })
	at := int64(0)
	for _, i := range infos {
		if i.begin != at {
			return corrupt("tensor %q: got bytes from %d on, want %d, where the tensor before it ends", i.Name, i.begin, at)
		}
		if i.end > size {
			return corrupt("tensor %q: got bytes up to %d, want them within the %d of the data", i.Name, i.end, size)
		}
		at = i.end
		if i.DType == dtype.Invalid {
			continue
		}
		want, err := shape.Bytes(i.DType, i.Shape)
		if err != nil {
			return fmt.Errorf("safetensors: tensor %q: %w: %w", i.Name, err, tensor.ErrCorrupt)
		}
		if int64(want) != i.Bytes() {
			return corrupt("tensor %q: got %d bytes, want %d of %s%s", i.Name, i.Bytes(), want, i.DType, i.Shape)
		}
	}
	if at != size {
		return corrupt("got %d bytes of data, want the %d that tensors take", size, at)
	}
	return nil
}

// decoder reads the header token by token: a decoder into structs would take
// names twice, in any case, and unknown ones.
type decoder struct{ *json.Decoder }

func (d *decoder) token(what string) (json.Token, error) {
	t, err := d.Token()
	if err == nil {
		return t, nil
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, corrupt("%s: got the end of the header", what)
	}
	return nil, corrupt("%s: %v", what, err)
}

func (d *decoder) expect(what string, want json.Delim) error {
	t, err := d.token(what)
	if err == nil && t != want {
		err = corrupt("%s: got %v, want %v", what, t, want)
	}
	return err
}

// object reads an object of which each name appears once.
func (d *decoder) object(what string, value func(name string) error) error {
	if err := d.expect(what, '{'); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.token(what)
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok {
			return corrupt("%s: got %v, want a name", what, t)
		}
		if seen[name] {
			return corrupt("%s: got %q a second time, want it once", what, name)
		}
		seen[name] = true
		if err := value(name); err != nil {
			return err
		}
	}
	return d.expect(what, '}')
}

func (d *decoder) text(what string) (string, error) {
	t, err := d.token(what)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", corrupt("%s: got %v, want a string", what, t)
	}
	return s, nil
}

// numbers reads a list of whole numbers of 0 or more.
func (d *decoder) numbers(what string) ([]int64, error) {
	if err := d.expect(what, '['); err != nil {
		return nil, err
	}
	list := []int64{}
	for d.More() {
		t, err := d.token(what)
		if err != nil {
			return nil, err
		}
		text, ok := t.(json.Number)
		n, err := text.Int64()
		if !ok || err != nil || n < 0 {
			return nil, corrupt("%s: got %v, want a whole number from 0 to %d", what, t, int64(math.MaxInt64))
		}
		list = append(list, n)
	}
	return list, d.expect(what, ']')
}

func (d *decoder) header() (infos []Info, metadata map[string]string, err error) {
	err = d.object("header", func(name string) error {
		if name != "__metadata__" {
			i, err := d.info(name)
			infos = append(infos, i)
			return err
		}
		metadata = map[string]string{}
		return d.object("__metadata__", func(key string) error {
			v, err := d.text(fmt.Sprintf("__metadata__ %q", key))
			metadata[key] = v
			return err
		})
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, nil, corrupt("header: got more behind its object, want spaces")
	}
	return infos, metadata, nil
}

// info reads the entry of one tensor.
func (d *decoder) info(name string) (Info, error) {
	i := Info{Name: name}
	what := fmt.Sprintf("tensor %q", name)
	var sizes, offsets []int64
	err := d.object(what, func(field string) (err error) {
		switch field {
		case "dtype":
			i.Type, err = d.text(what + ", dtype")
		case "shape":
			sizes, err = d.numbers(what + ", shape")
		case "data_offsets":
			offsets, err = d.numbers(what + ", data_offsets")
		default:
			err = corrupt("%s: got %q, want dtype, shape and data_offsets", what, field)
		}
		return err
	})
	switch {
	case err != nil:
		return i, err
	case i.Type == "" || sizes == nil || offsets == nil:
		return i, corrupt("%s: got no dtype, shape or data_offsets, want all three", what)
	case len(offsets) != 2 || offsets[0] > offsets[1]:
		return i, corrupt("%s: got data_offsets %v, want where its bytes begin and where they end", what, offsets)
	}
	dims := make([]int, len(sizes))
	for k, n := range sizes {
		dims[k] = int(n)
	}
	if i.Shape, err = shape.Of(dims...); err != nil {
		return i, fmt.Errorf("safetensors: %s: %w: %w", what, err, tensor.ErrCorrupt)
	}
	i.DType, i.begin, i.end = types[i.Type], offsets[0], offsets[1]
	return i, nil
}
