package nbits

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// multiply computes the rows of a tile and a panel of columns.
func (p *Product) multiply(w *work, b block, c []float32, ldc int, add bool) {
	for row := 0; row < w.Rows; {
		n := p.together(w.Rows - row)
		_ = c[(row+n-1)*ldc+p.lanes-1]
		// A call of assembly does so much and no more.
		most := max(1, kernel.AsmElements/n/p.Block)
		if p.Ints {
			most *= 4
		}
		rest, from := b, add
		for first := 0; first < p.blocks; first += most {
			part := rest
			part.n = min(most, rest.n)
			if p.Ints {
				a := w.bytes[row*p.record+first*(p.Block+8):]
				p.multiplyInts(a, n, part, c[row*ldc:], ldc, from)
			} else {
				p.multiplyFloats(w.left[row*w.lda+first*p.Block:], n, w.lda, part, c[row*ldc:], ldc, from)
			}
			rest, from = p.after(rest, part.n), true
		}
		row += n
	}
}

// together is how many of so many rows one loop computes.
func (p *Product) together(rows int) int {
	for _, n := range []int{8, 4, 2} {
		if n <= rows && (p.Ints && p.v.Nbits.Ints[p.Bits][n] != nil || !p.Ints && p.v.Nbits.Floats[p.Bits][n] != nil) {
			return n
		}
	}
	return 1
}

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// start is where the bytes of zeros begin, nil if there are none.
func start(zero []byte) *byte {
	if len(zero) == 0 {
		return nil
	}
	return &zero[0]
}

// check reaches for the last elements that a loop reads of b.
func (p *Product) check(b block) {
	_, _ = b.b[b.n*p.blockBytes()-1], b.scale[b.n*p.lanes-1]
	if p.Zeros != OneZero {
		_ = b.zero[b.n*p.lanes*p.zeroSize()-1]
	}
}

func (p *Product) multiplyInts(a []byte, rows int, b block, c []float32, ldc int, add bool) {
	p.check(b)
	_ = a[(rows-1)*p.record+b.n*(p.Block+8)-1]
	loop := p.v.Nbits.Ints[p.Bits][rows]
	if loop == nil {
		p.portableInts(a, b, c[:p.lanes], add)
		return
	}
	loop(b.n, p.Block/Step, &a[0], p.record, &b.b[0], &b.scale[0], start(b.zero), int32(p.Middle), &c[0], 4*ldc, asInt(add))
}

func (p *Product) multiplyFloats(a []float32, rows, lda int, b block, c []float32, ldc int, add bool) {
	p.check(b)
	_ = a[(rows-1)*lda+b.n*p.Block-1]
	loop := p.v.Nbits.Floats[p.Bits][rows]
	if p.tables() {
		loop = p.v.Nbits.Tables[p.Bits][rows]
	}
	if loop == nil {
		p.portableFloats(a, b, c[:p.lanes], add)
		return
	}
	loop(b.n, p.Block/Step, &a[0], 4*lda, &b.b[0], &b.scale[0], start(b.zero), int(p.Zeros), &p.less[0], &c[0], 4*ldc, asInt(add))
}

// expand makes float32 of blocks of a panel, in rows that are ld apart.
func expand(p *Product, dst []float32, ld int, b block) {
	p.check(b)
	_ = dst[(b.n*p.Block-1)*ld+p.lanes-1]
	if loop := p.v.Nbits.Expand[p.Bits]; loop != nil {
		loop(b.n, p.Block/Step, &dst[0], 4*ld, &b.b[0], &b.scale[0], start(b.zero), int(p.Zeros), &p.less[0])
		return
	}
	for i := range b.n {
		for k := range p.Block {
			for j := range p.lanes {
				dst[(i*p.Block+k)*ld+j] = (float32(p.element(b, i, k, j)) - p.zeroAt(b, i, j)) * b.scale[i*p.lanes+j]
			}
		}
	}
}

// element is weight k of a block of a column.
func (p *Product) element(b block, i, k, j int) byte {
	fields := 8 / p.Bits
	group := k / 4
	at := i*p.blockBytes() + (group/fields*p.lanes+j)*4 + k%4
	return b.b[at] >> (group % fields * p.Bits) & (1<<p.Bits - 1)
}

// zeroAt is the zero of a block of a column.
func (p *Product) zeroAt(b block, i, j int) float32 {
	switch p.Zeros {
	case ByteZeros:
		return float32(b.zero[i*p.lanes+j])
	case FloatZeros:
		return kernel.View[float32](b.zero)[i*p.lanes+j]
	}
	return float32(p.Middle)
}

// portableInts computes one row.
func (p *Product) portableInts(a []byte, b block, c []float32, add bool) {
	if !add {
		clear(c)
	}
	for i := range b.n {
		less := kernel.View[int32](a)[0]
		row, scale := a[4:][:p.Block], kernel.View[float32](a[4+p.Block:])[0]
		a = a[p.Block+8:]
		for j := range c {
			sum := less * int32(p.zeroAt(b, i, j))
			for k, x := range row {
				sum += int32(int8(x)) * int32(p.element(b, i, k, j))
			}
			c[j] += float32(float32(sum) * float32(b.scale[i*p.lanes+j]*scale))
		}
	}
}

// portableFloats computes one row.
func (p *Product) portableFloats(a []float32, b block, c []float32, add bool) {
	if !add {
		clear(c)
	}
	for i := range b.n {
		row := a[i*p.Block:][:p.Block]
		for j := range c {
			sum, zero := float32(0), p.zeroAt(b, i, j)
			for k, x := range row {
				sum += float32(x * (float32(p.element(b, i, k, j)) - zero))
			}
			c[j] += float32(sum * b.scale[i*p.lanes+j])
		}
	}
}

// quantize makes blocks of signed bytes of whole blocks of a row: before each
// its sum, negative, and after it its scale.
func quantize(v *kernel.Variant, size int, dst []byte, x []float32) {
	blocks := len(x) / size
	if blocks == 0 {
		return
	}
	_ = dst[blocks*(size+8)-1]
	if v.Nbits.Quantize != nil {
		v.Nbits.Quantize(blocks, size/Step, &dst[0], &x[0])
		return
	}
	for range blocks {
		peak, odd := float32(0), float32(0)
		for _, f := range x[:size] {
			peak = max(peak, float32(math.Abs(float64(f))))
			odd += f * 0
		}
		most := min(127/peak, math.MaxFloat32)
		sum := int32(0)
		for i, f := range x[:size] {
			q := int32(0)
			if odd == 0 { // NaN if some number is not finite
				q = int32(math.RoundToEven(float64(float32(f * most))))
			}
			dst[4+i] = byte(int8(q))
			sum += q
		}
		kernel.View[int32](dst)[0] = -sum
		kernel.View[float32](dst[4+size:])[0] = peak/127 + odd
		x, dst = x[size:], dst[size+8:]
	}
}
