package tensor

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// Larger tensors are shown by the first and last few elements of each
// dimension.
const (
	showAll   = 1000
	showEdges = 3
)

// String returns type, shape and values in a readable form: small tensors
// completely, large ones by the first and last elements of each dimension. For
// a dead tensor, and one that is being written, the state replaces the values.
func (t *Tensor) String() string { return t.text(numbers{}, false) }

// Format implements fmt.Formatter: %v and %s as String, %+v with all elements,
// and %f, %e, %g and similar verbs with float elements in that form, such as
// %.2f.
func (t *Tensor) Format(f fmt.State, verb rune) {
	var n numbers
	switch verb {
	case 'v', 's':
	case 'e', 'E', 'f', 'F', 'g', 'G':
		n = numbers{verb: byte(verb), digits: -1}
		if verb == 'F' {
			n.verb = 'f'
		}
		if digits, ok := f.Precision(); ok {
			n.digits = digits
		}
	default:
		_, _ = fmt.Fprintf(f, "%%!%c(%s)", verb, t.name())
		return
	}
	_, _ = io.WriteString(f, t.text(n, f.Flag('+'))) // as in package fmt, the caller gets the error
}

func (t *Tensor) name() string {
	if t == nil || t.buf == nil {
		return "tensor(none)"
	}
	return t.describe()
}

func (t *Tensor) text(n numbers, whole bool) string {
	if t == nil || t.buf == nil {
		return t.name()
	}
	if err := t.use(); err != nil {
		return t.describe() + " (" + t.lifeless(err) + ")"
	}
	if d := t.buf.Device(); d != nil {
		t.endUse()
		return t.describe() + " on " + d.String()
	}
	defer t.endUse()
	if t.NumElements() == 0 {
		return t.describe() + " []"
	}
	p := printer{t: t, numbers: n, data: t.bytes(), sizes: t.Shape().Sizes(), strides: t.layout.Strides()}
	if t.NumElements() > showAll && !whole {
		p.edges = showEdges
	}
	p.collect(0, t.first*8, t.dt.Bits())
	var sb strings.Builder
	sb.WriteString(t.describe())
	if t.Shape().Rank() > 1 {
		sb.WriteByte('\n')
	} else {
		sb.WriteByte(' ')
	}
	p.write(&sb, 0)
	return sb.String()
}

func (t *Tensor) lifeless(err error) string {
	switch f := t.fate.Load(); {
	case err == ErrWriting:
		return "being written"
	case f != nil && t.h.Err() != nil:
		return "donated to " + f.name
	}
	return "released"
}

// printer formats all elements that are shown, so that they can be aligned, and
// then writes them with the brackets.
type printer struct {
	t              *Tensor
	numbers        numbers
	data           []byte
	sizes, strides []int
	edges          int // 0 means that everything is shown
	cells          []string
	width          int
}

// shown calls f for each index of a dimension that is shown, and once with -1
// for the omitted ones.
func (p *printer) shown(n int, f func(i int)) {
	for i := 0; i < n; i++ {
		if p.edges > 0 && n > 2*p.edges && i == p.edges {
			f(-1)
			i = n - p.edges
		}
		f(i)
	}
}

func (p *printer) collect(d, atBit, bits int) {
	if d == len(p.sizes) {
		cell := p.numbers.element(p.t.dt, p.data, atBit)
		p.cells = append(p.cells, cell)
		p.width = max(p.width, len(cell))
		return
	}
	p.shown(p.sizes[d], func(i int) {
		if i >= 0 {
			p.collect(d+1, atBit+i*p.strides[d]*bits, bits)
		}
	})
}

func (p *printer) write(sb *strings.Builder, d int) {
	if d == len(p.sizes) {
		cell := p.cells[0]
		p.cells = p.cells[1:]
		if d > 0 {
			sb.WriteString(strings.Repeat(" ", p.width-len(cell)))
		}
		sb.WriteString(cell)
		return
	}
	last := d == len(p.sizes)-1
	sb.WriteByte('[')
	begun := false
	p.shown(p.sizes[d], func(i int) {
		switch {
		case !begun:
		case last:
			sb.WriteByte(' ')
		default:
			sb.WriteString("\n" + strings.Repeat(" ", d+1))
		}
		begun = true
		if i < 0 {
			sb.WriteString("...")
		} else {
			p.write(sb, d+1)
		}
	})
	sb.WriteByte(']')
}

// load reads a value at any alignment.
func load[T any](b []byte) T {
	var v T
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), b)
	return v
}

// numbers is the format of floats. Its zero value is the format of String.
type numbers struct {
	verb   byte
	digits int
}

func (n numbers) element(dt dtype.DType, data []byte, atBit int) string {
	b := data[atBit/8:]
	switch dt {
	case dtype.F32:
		return n.float(float64(load[float32](b)), 32)
	case dtype.F64:
		return n.float(load[float64](b), 64)
	case dtype.F16:
		return n.float(float64(load[dtype.Float16](b).Float32()), 32)
	case dtype.BF16:
		return n.float(float64(load[dtype.BFloat16](b).Float32()), 32)
	case dtype.I8:
		return strconv.Itoa(int(load[int8](b)))
	case dtype.I16:
		return strconv.Itoa(int(load[int16](b)))
	case dtype.I32:
		return strconv.Itoa(int(load[int32](b)))
	case dtype.I64:
		return strconv.FormatInt(load[int64](b), 10)
	case dtype.U8:
		return strconv.Itoa(int(b[0]))
	case dtype.U16:
		return strconv.Itoa(int(load[uint16](b)))
	case dtype.U32:
		return strconv.FormatUint(uint64(load[uint32](b)), 10)
	case dtype.U64:
		return strconv.FormatUint(load[uint64](b), 10)
	case dtype.Bool:
		return strconv.FormatBool(b[0] != 0)
	case dtype.C64:
		return n.complex(complex128(load[complex64](b)), 32)
	case dtype.C128:
		return n.complex(load[complex128](b), 64)
	}
	return n.small(dt, data, atBit)
}

// small formats elements of types that Go does not have: small floats and
// integers as numbers, everything else as bits.
func (n numbers) small(dt dtype.DType, data []byte, atBit int) string {
	if dt.Bits() <= 8 {
		pattern := patternAt(dt, data, atBit/dt.Bits())
		if f := smallFloats[dt]; f != nil {
			return n.float(float64(f(pattern)), 32)
		}
		return strconv.Itoa(packedInt(dt, pattern))
	}
	return fmt.Sprintf("0x%x", data[atBit/8:atBit/8+dt.Size()])
}

// float formats up to 6 significant digits, 9 of f64, unless a verb sets the
// format, and then adds a point to whole numbers.
func (n numbers) float(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	if n.verb != 0 {
		return strconv.FormatFloat(f, n.verb, n.digits, bits)
	}
	digits := 6
	if bits == 64 {
		digits = 9
	}
	s := strconv.FormatFloat(f, 'g', digits, bits)
	if !strings.ContainsAny(s, ".e") {
		s += "."
	}
	return s
}

func (n numbers) complex(c complex128, bits int) string {
	re, im := n.float(real(c), bits), n.float(imag(c), bits)
	if im[0] != '-' && im[0] != '+' {
		im = "+" + im
	}
	return re + im + "i"
}
