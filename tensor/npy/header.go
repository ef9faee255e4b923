package npy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/tensor"
)

// A file begins with the magic, a version of two bytes, the length of the
// header (2 bytes in version 1, 4 after) and the header: a Python literal of a
// dict with exactly three keys, padded with spaces.
//
//	\x93NUMPY \x01\x00 \x76\x00 {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n
const magic = "\x93NUMPY"

// maxHeader bounds the header before it is read. The longest that makes sense,
// 64 dimensions of 20 digits, is far below.
const maxHeader = 64 << 10

type header struct {
	descr   string
	fortran bool
	dims    []int
}

// readHeader reads up to the first byte of data.
func readHeader(r io.Reader) (header, error) {
	var pre [12]byte
	if _, err := io.ReadFull(r, pre[:len(magic)+2]); err != nil {
		return header{}, truncated("the magic and version", err)
	}
	if string(pre[:len(magic)]) != magic {
		return header{}, fmt.Errorf("npy: got % x at the start, want the magic % x: %w", pre[:len(magic)], magic, tensor.ErrCorrupt)
	}
	major, minor := pre[len(magic)], pre[len(magic)+1]
	if major < 1 || major > 3 || minor != 0 {
		return header{}, fmt.Errorf("npy: got version %d.%d, want 1.0, 2.0 or 3.0: %w", major, minor, tensor.ErrUnsupported)
	}
	length := pre[8:10]
	if major > 1 {
		length = pre[8:12]
	}
	if _, err := io.ReadFull(r, length); err != nil {
		return header{}, truncated("the length of the header", err)
	}
	n := uint32(binary.LittleEndian.Uint16(length))
	if major > 1 {
		n = binary.LittleEndian.Uint32(length)
	}
	if n > maxHeader {
		return header{}, fmt.Errorf("npy: got a header of %d bytes, want at most %d: %w", n, maxHeader, tensor.ErrCorrupt)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return header{}, truncated("the header", err)
	}
	p := literal{text: string(text)}
	return p.header()
}

func truncated(what string, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("npy: the file ends in %s: %w", what, tensor.ErrCorrupt)
	}
	return wrapSource(err)
}

// literal parses the part of Python's literals that a header is made of.
type literal struct {
	text string
	at   int
}

func (p *literal) errorf(format string, args ...any) error {
	return fmt.Errorf("npy: header, byte %d: %s: %w", p.at, fmt.Sprintf(format, args...), tensor.ErrCorrupt)
}

func (p *literal) space() {
	for p.at < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.at]) >= 0 {
		p.at++
	}
}

// accept skips space and then c, if it is there.
func (p *literal) accept(c byte) bool {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *literal) expect(c byte) error {
	if !p.accept(c) {
		return p.errorf("got %s, want %q", p.next(), c)
	}
	return nil
}

// next returns the text at the present position, for errors.
func (p *literal) next() string {
	if p.at >= len(p.text) {
		return "the end"
	}
	return strconv.QuoteToASCII(p.text[p.at:min(p.at+8, len(p.text))])
}

func (p *literal) header() (h header, err error) {
	if err := p.expect('{'); err != nil {
		return h, err
	}
	seen := map[string]bool{}
	for !p.accept('}') {
		key, err := p.quoted()
		if err != nil {
			return h, err
		}
		if seen[key] {
			return h, p.errorf("got key %q again, want it once", key)
		}
		seen[key] = true
		if err := p.expect(':'); err != nil {
			return h, err
		}
		switch key {
		case "descr":
			h.descr, err = p.descr()
		case "fortran_order":
			h.fortran, err = p.boolean()
		case "shape":
			h.dims, err = p.tuple()
		default:
			err = p.errorf("got key %.40q, want descr, fortran_order and shape", key)
		}
		if err != nil {
			return h, err
		}
		if !p.accept(',') {
			if err := p.expect('}'); err != nil {
				return h, err
			}
			break
		}
	}
	p.space()
	if p.at != len(p.text) {
		return h, p.errorf("got %s behind the dict, want the end", p.next())
	}
	for _, key := range []string{"descr", "fortran_order", "shape"} {
		if !seen[key] {
			return h, p.errorf("got no key %q", key)
		}
	}
	return h, nil
}

func (p *literal) quoted() (string, error) {
	for _, quote := range []byte{'\'', '"'} {
		if !p.accept(quote) {
			continue
		}
		end := strings.IndexByte(p.text[p.at:], quote)
		if end < 0 {
			return "", p.errorf("got a string without an end")
		}
		s := p.text[p.at : p.at+end]
		if strings.ContainsAny(s, "\\\n") {
			return "", p.errorf("got a string with an escape or a line end, want a plain one")
		}
		p.at += end + 1
		return s, nil
	}
	return "", p.errorf("got %s, want a string", p.next())
}

func (p *literal) descr() (string, error) {
	p.space()
	if p.at < len(p.text) && p.text[p.at] == '[' {
		return "", fmt.Errorf("npy: got an array of records, want one of numbers: %w", tensor.ErrUnsupported)
	}
	return p.quoted()
}

func (p *literal) boolean() (bool, error) {
	p.space()
	for word, v := range map[string]bool{"True": true, "False": false} {
		if strings.HasPrefix(p.text[p.at:], word) {
			p.at += len(word)
			return v, nil
		}
	}
	return false, p.errorf("got %s, want True or False", p.next())
}

// tuple parses (), (3,), (3, 4) and (3, 4,). A single number needs its comma:
// (3) is no tuple.
func (p *literal) tuple() ([]int, error) {
	if err := p.expect('('); err != nil {
		return nil, err
	}
	dims := []int{}
	comma := true
	for !p.accept(')') {
		if !comma {
			return nil, p.errorf("got %s, want a comma or the end of the tuple", p.next())
		}
		n, err := p.integer()
		if err != nil {
			return nil, err
		}
		dims = append(dims, n)
		comma = p.accept(',')
	}
	if len(dims) == 1 && !comma {
		return nil, p.errorf("got a number in parentheses, want a tuple")
	}
	return dims, nil
}

func (p *literal) integer() (int, error) {
	p.space()
	start := p.at
	n := 0
	for ; p.at < len(p.text) && p.text[p.at] >= '0' && p.text[p.at] <= '9'; p.at++ {
		d := int(p.text[p.at] - '0')
		if n > (math.MaxInt-d)/10 {
			return 0, p.errorf("got a dimension beyond %d", math.MaxInt)
		}
		n = 10*n + d
	}
	if p.at == start {
		return 0, p.errorf("got %s, want a dimension", p.next())
	}
	if p.at < len(p.text) && p.text[p.at] == 'L' { // Python 2 wrote long integers so
		p.at++
	}
	return n, nil
}

// bytes returns everything that stands before the data.
func (h header) bytes() []byte {
	var sb strings.Builder
	order := "False"
	if h.fortran {
		order = "True"
	}
	fmt.Fprintf(&sb, "{'descr': '%s', 'fortran_order': %s, 'shape': (", h.descr, order)
	for i, n := range h.dims {
		if i > 0 {
			sb.WriteByte(' ')
		}
		fmt.Fprintf(&sb, "%d,", n)
	}
	text := strings.TrimSuffix(sb.String(), ",")
	if len(h.dims) == 1 {
		text += ","
	}
	text += "), }"
	// The data shall begin at a multiple of 64, so that it can be mapped; the
	// header ends with a line end.
	pre := len(magic) + 2 + 2
	if pad(pre, len(text)) > math.MaxUint16 {
		pre += 2
	}
	n := pad(pre, len(text))
	b := []byte(magic)
	if pre == len(magic)+2+2 {
		b = append(b, 1, 0)
		b = binary.LittleEndian.AppendUint16(b, uint16(n))
	} else {
		b = append(b, 2, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(n))
	}
	b = append(b, text...)
	b = append(b, bytes.Repeat([]byte{' '}, n-len(text)-1)...)
	return append(b, '\n')
}

// pad returns the length of a header of that text so that the data behind it is
// aligned.
func pad(pre, text int) int { return (pre+text+1+63)/64*64 - pre }
