package sequence_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

// rangesCase is a call of Attend whose queries see ranges of keys.
type rangesCase struct {
	batch, heads, groups, queries, past, keys, size, values int
	causal                                                  bool
	left, right                                             int
	lengths, packed                                         bool
	block                                                   int // keys are in blocks of so many rows
	mask                                                    int // 0 none, 1 of bools, 2 of floats; for all heads
	maskKeys                                                int
	softcap                                                 float64
	stage                                                   int // of Scores, -1 without
}

func TestAttendRanges(t *testing.T) { kerneltest.EachVariant(t, testAttendRanges) }

func testAttendRanges(t *testing.T, v *kernel.Variant) {
	cases := []rangesCase{
		{batch: 2, heads: 4, groups: 2, queries: 3, past: 5, keys: 4, size: 7, values: 9},
		{batch: 1, heads: 2, groups: 2, queries: 70, past: 13, keys: 70, size: 33, values: 40, causal: true},
		{batch: 1, heads: 3, groups: 1, queries: 150, keys: 150, size: 16, values: 24, causal: true, left: 20},
		{batch: 2, heads: 2, groups: 1, queries: 9, keys: 1500, size: 8, values: 16, causal: true, lengths: true},
		{batch: 2, heads: 8, groups: 2, queries: 1, keys: 1300, size: 16, values: 16, lengths: true},
		{batch: 1, heads: 2, groups: 2, queries: 40, past: 1100, keys: 40, size: 8, values: 8, causal: true, softcap: 0.5},
		{batch: 3, heads: 4, groups: 2, queries: 12, keys: 96, size: 20, values: 33, block: 16, lengths: true, causal: true},
		{batch: 2, heads: 4, groups: 4, queries: 1, keys: 84, size: 20, values: 33, block: 12, lengths: true},
		{batch: 2, heads: 2, groups: 2, queries: 80, keys: 90, size: 12, values: 12, mask: 1, maskKeys: 90},
		{batch: 2, heads: 2, groups: 2, queries: 80, keys: 90, size: 12, values: 12, mask: 2, maskKeys: 70},
		{batch: 1, heads: 2, groups: 1, queries: 6, past: 3, keys: 40, size: 12, values: 12, mask: 2, maskKeys: 43, stage: 3},
		{batch: 2, heads: 4, groups: 2, queries: 70, past: 20, keys: 50, size: 12, values: 12, causal: true, stage: 2, softcap: 0.7},
	}
	for i := range cases {
		c := &cases[i]
		c.right--
		if c.left--; c.left < 0 {
			c.left = -1
		}
		if c.stage == 0 {
			c.stage = -1
		}
	}
	r := kerneltest.NewRand(95)
	for range 150 {
		cases = append(cases, drawRanges(r))
	}
	for i, c := range cases {
		for _, dt := range []dtype.DType{dtype.F32, [2]dtype.DType{dtype.F16, dtype.BF16}[i%2], dtype.F64} {
			t.Run(fmt.Sprintf("%+v/%s", c, dt), func(t *testing.T) { attendRanges(t, v, c, dt) })
		}
	}
}

func drawRanges(r *rand.Rand) (c rangesCase) {
	pick := func(n ...int) int { return n[r.IntN(len(n))] }
	c.batch, c.groups = 1+r.IntN(2), 1+r.IntN(3)
	c.heads, c.queries = c.groups*pick(1, 2, 4), pick(1, 1, 2, 5, 33, 66)
	c.keys, c.size, c.values = pick(1, 7, 32, 65, 130), pick(0, 3, 16, 33), pick(1, 8, 40)
	c.causal, c.left, c.right = r.IntN(2) == 0, pick(-1, -1, 0, 3, 40), pick(-1, -1, 0, 2, 30)
	c.mask, c.softcap, c.stage = r.IntN(3), float64(pick(0, 0, 1)), pick(-1, -1, 0, 1, 2, 3)
	switch r.IntN(4) {
	case 0:
		c.past = pick(1, 31, 64)
	case 1:
		c.lengths = true
	case 2:
		c.lengths, c.stage, c.block = true, -1, pick(1, 5, 16, 40)
		c.keys = (c.keys + c.block - 1) / c.block * c.block
	}
	c.packed = c.block == 0 && r.IntN(2) == 0
	c.maskKeys = max(1, c.past+c.keys-pick(0, 0, 3))
	return c
}

// hides reports whether a query does not see a key, by the definition.
func (c *rangesCase) hides(query, key, length int) bool {
	place := query + c.past
	if c.lengths {
		place = query + length - c.queries
	}
	return key >= length || c.causal && key > place || c.left >= 0 && key < place-c.left || c.right >= 0 && key > place+c.right
}

// attendRanges compares a call with the reference. Keys and values that no
// query sees are NaN, and so are values that some queries do not see.
func attendRanges(t *testing.T, v *kernel.Variant, c rangesCase, dt dtype.DType) {
	r := kerneltest.NewRand(uint64(96 + c.queries))
	total := c.past + c.keys
	lengths := make([]int, c.batch)
	for i := range lengths {
		if lengths[i] = total; c.lengths {
			lengths[i] = r.IntN(total + 1)
		}
	}
	q := kerneltest.Uniform(r, c.batch*c.heads*c.queries*c.size)
	k, val := kerneltest.Uniform(r, c.batch*c.groups*total*c.size), kerneltest.Uniform(r, c.batch*c.groups*total*c.values)
	masks := kerneltest.Uniform(r, c.batch*c.queries*c.maskKeys) // [batch, 1, queries, keys]
	for i := range masks {
		row, key := i/c.maskKeys, i%c.maskKeys
		if key < row%7*3 || key >= c.maskKeys-row%5*9 || row%6 == 5 || r.IntN(3) == 0 {
			masks[i] = float32(math.Inf(-1))
		}
	}
	open := func(b, i, j int) bool {
		return !c.hides(i, j, lengths[b]) && (c.mask == 0 || j < c.maskKeys && !math.IsInf(float64(masks[(b*c.queries+i)*c.maskKeys+j]), -1))
	}
	for b := range c.batch { // keys that nobody sees; the last one that only some see has a value of Inf
		for j := range total {
			seen, all := false, true
			for i := range c.queries {
				isOpen := !c.hides(i, j, lengths[b]) && (c.mask == 0 || j < c.maskKeys)
				seen, all = seen || isOpen, all && isOpen
			}
			for g := range c.groups {
				if row := (b*c.groups+g)*total + j; !seen {
					if c.stage < 0 {
						kernel.Repeat(k[row*c.size:][:c.size], float32(math.NaN()))
					}
					kernel.Repeat(val[row*c.values:][:c.values], float32(math.NaN()))
				} else if !all && j%16 == 3 && c.mask == 0 {
					val[row*c.values] = float32(math.Inf(1))
				}
			}
		}
	}
	s := kerneltest.NewSpace(t)
	a := sequence.Attend{
		Type: dt, Batch: []int{c.batch}, Heads: c.heads, Groups: c.groups, Queries: c.queries, Keys: total, Past: c.past, Size: c.size, ValueSize: c.values,
		Scale: 0.3, Softcap: c.softcap, Fill: math.Inf(-1), Ranges: &sequence.Ranges{Causal: c.causal, Left: c.left, Right: c.right, MaskKeys: c.maskKeys},
		HasScores: c.stage >= 0, Stage: max(0, c.stage),
	}
	place := func(to *sequence.Strides, heads, rows, size int, packed bool) {
		p := sequence.RowsOf(heads, rows, size, packed)
		*to = sequence.Strides{Batch: []int{p.Sample}, Head: p.Head, Row: p.Row, Column: 1}
	}
	place(&a.Q, c.heads, c.queries, c.size, c.packed)
	place(&a.Y, c.heads, c.queries, c.values, c.packed)
	var args sequence.AttendArgs
	args.Q = elements(s, "q", dt, reordered(q, c.batch, c.heads, c.queries, c.size, c.packed))
	round(dt, q)
	round(dt, k)
	round(dt, val)
	fresh := func(x []float32, size int, to, past *sequence.Strides) (e, p sequence.Elements) {
		var first, rest []float32
		for row := range c.batch * c.groups {
			all := x[row*total*size:][:total*size]
			first, rest = append(first, all[:c.past*size]...), append(rest, all[c.past*size:]...)
		}
		place(past, c.groups, c.past, size, false)
		if c.past > 0 {
			p = elements(s, "past", dt, first)
		}
		if c.block > 0 {
			pool, tables := blocksOf(rest, c.batch, c.groups, c.keys, size, c.block)
			a.Block, a.Columns, args.Tables = c.block, c.keys/c.block, tables
			place(to, c.groups, c.block, size, false)
			return elements(s, "pool", dt, pool), p
		}
		place(to, c.groups, c.keys, size, c.packed)
		return elements(s, "new", dt, reordered(rest, c.batch, c.groups, c.keys, size, c.packed)), p
	}
	args.K, args.PastK = fresh(k, c.size, &a.K, &a.PastK)
	args.V, args.PastV = fresh(val, c.values, &a.V, &a.PastV)
	if c.block > 0 {
		a.BlockK, a.BlockV = a.K.Batch[0], a.V.Batch[0]
		a.K.Batch[0], a.V.Batch[0] = 0, 0
	}
	if c.lengths {
		for _, n := range lengths {
			args.Lengths = append(args.Lengths, int64(n))
		}
	}
	maskStrides := sequence.Strides{Batch: []int{c.queries * c.maskKeys}, Row: c.maskKeys, Column: 1}
	switch c.mask {
	case 1:
		allow := make([]uint8, len(masks))
		for i := range masks {
			if !math.IsInf(float64(masks[i]), -1) {
				allow[i], masks[i] = 1, 0
			}
		}
		a.Mask, args.Mask = maskStrides, kerneltest.In(s, "allow", allow)
	case 2:
		a.Addends[0] = sequence.Addend{Strides: maskStrides, Type: dt}
		args.Addends[0] = elements(s, "bias", dt, masks)
	}
	var y, scores func(i int) float64
	args.Y, y = result(s, dt, c.batch*c.heads*c.queries*c.values)
	if a.HasScores {
		args.Scores, scores = result(s, dt, c.batch*c.heads*c.queries*total)
	}
	a.Prepare(v)
	scratch := kerneltest.AsBytes(kerneltest.Out[float64](s, "scratch", (a.ScratchBytes()+7)/8))
	kerneltest.Backwards(a.Tiles(), func(i int) {
		kernel.Repeat(scratch, 0xff) // NaN
		a.Tile(i, scratch, &args)
	})
	s.Check()
	ref.Each([]int{c.batch, c.heads, c.queries}, func(idx []int) {
		b, h, i := idx[0], idx[1], idx[2]
		g := h / (c.heads / c.groups)
		row := func(x []float32, rows, at, size int) []float64 { return kerneltest.F64s(x[(rows+at)*size:][:size]) }
		var keys, values [][]float64
		var biases []float64
		for j := range total {
			if !open(b, i, j) {
				continue
			}
			keys, values = append(keys, row(k, (b*c.groups+g)*total, j, c.size)), append(values, row(val, (b*c.groups+g)*total, j, c.values))
			bias := 0.0
			if c.mask != 0 {
				bias = float64(masks[(b*c.queries+i)*c.maskKeys+j])
			}
			biases = append(biases, bias)
		}
		want := make([]float64, c.values)
		if len(keys) > 0 {
			want = ref.Attend(row(q, (b*c.heads+h)*c.queries, i, c.size), keys, values, biases, a.Scale, a.Softcap)
		}
		for d, w := range want {
			at := b*a.Y.Batch[0] + h*a.Y.Head + i*a.Y.Row + d
			if got := y(at); !(math.Abs(got-w) <= within[dt]) && got != w {
				t.Fatalf("sample %d head %d query %d element %d: got %v, want %v", b, h, i, d, got, w)
			}
		}
		if scores == nil {
			return
		}
		at := ((b*c.heads+h)*c.queries + i) * total
		wantScores := make([]float64, total)
		for j := range wantScores {
			x := 0.0
			for d, e := range row(q, (b*c.heads+h)*c.queries, i, c.size) {
				x += e * float64(k[((b*c.groups+g)*total+j)*c.size+d])
			}
			x *= a.Scale
			if c.softcap != 0 && c.stage > 0 {
				x = c.softcap * math.Tanh(x/c.softcap)
			}
			if c.stage > 1 && !open(b, i, j) {
				x = math.Inf(-1)
			} else if c.stage > 1 && c.mask != 0 {
				x += float64(masks[(b*c.queries+i)*c.maskKeys+j])
			}
			wantScores[j] = x
		}
		if c.stage == 3 {
			if wantScores = softmax(wantScores); len(keys) == 0 {
				clear(wantScores)
			}
		}
		for j, w := range wantScores {
			if got := scores(at + j); !(math.Abs(got-w) <= 8*within[dt]) && got != w && !(math.IsNaN(got) && math.IsNaN(w)) {
				t.Fatalf("sample %d head %d query %d key %d: got score %v, want %v", b, h, i, j, got, w)
			}
		}
	})
}

// round rounds numbers to a type.
func round(dt dtype.DType, x []float32) {
	if dt == dtype.F16 || dt == dtype.BF16 {
		for i := range x {
			x[i] = kerneltest.FromHalf(dt, kerneltest.ToHalf(dt, x[i]))
		}
	}
}

// reordered returns x [batch, heads, rows, size] as [batch, rows, heads, size]
// if packed, and a copy of it if not.
func reordered(x []float32, batch, heads, rows, size int, packed bool) []float32 {
	y := make([]float32, len(x))
	p := sequence.RowsOf(heads, rows, size, packed)
	ref.Each([]int{batch, heads, rows}, func(i []int) {
		copy(y[p.At(i[0], i[1], i[2]):][:size], x[((i[0]*heads+i[1])*rows+i[2])*size:])
	})
	return y
}

// blocksOf puts x [batch, heads, rows, size] into blocks, in backward order and
// with one more of NaN, and returns the tables of samples.
func blocksOf(x []float32, batch, heads, rows, size, block int) (pool []float32, tables []int64) {
	columns := rows / block
	pool = make([]float32, (batch*columns+1)*heads*block*size)
	kernel.Repeat(pool, float32(math.NaN()))
	for b := range batch {
		for c := range columns {
			at := batch*columns - 1 - b*columns - c
			tables = append(tables, int64(at))
			for h := range heads {
				copy(pool[(at*heads+h)*block*size:][:block*size], x[((b*heads+h)*rows+c*block)*size:])
			}
		}
	}
	return pool, tables
}
