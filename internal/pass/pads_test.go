package pass_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// padded are bodies of programs over %x: f32[2,4,5,6] and %c: bool[], and the
// number of pads that stay. The weight @pN holds the pads of the axes.
var padded = []struct {
	name, body string
	stay       int
}{
	{"symmetric", `
		%p = pad(%x, @same)
		%y = conv(%p, @w, @b)
		return %y, %x`, 0},
	{"the ends differ, and the convolution has pads", `
		%p = pad(%x, @ends, @zero)
		%y = conv(%p, @w) {pads = [1, 0, 0, 2], strides = [2, 1]}
		return %y, %x`, 0},
	{"pads of some axes", `
		%p = pad(%x, @two, _, @axes)
		%y = conv(%p, @each) {group = 4}
		return %y, %x`, 0},
	{"one after the other", `
		%p = pad(%x, @same)
		%q = pad(%p, @ends)
		%y = conv(%q, @w)
		return %y, %x`, 0},
	{"two convolutions", `
		%p = pad(%x, @ends)
		%y = conv(%p, @w)
		%z = conv(%p, @one) {auto_pad = "VALID"}
		return %y, %z`, 0},
	{"a reader that needs it", `
		%p = pad(%x, @ends)
		%y = conv(%p, @w)
		%z = relu(%p)
		return %y, %z`, 1},
	{"a result", `
		%p = pad(%x, @ends)
		%y = conv(%p, @w)
		return %y, %p`, 1},
	{"of another number", `
		%p = pad(%x, @ends, @number)
		%y = conv(%p, @w)
		return %y, %x`, 1},
	{"mirrored", `
		%p = pad(%x, @same) {mode = "reflect"}
		%y = conv(%p, @w)
		return %y, %x`, 1},
	{"cropped", `
		%p = pad(%x, @crop)
		%y = conv(%p, @w)
		return %y, %x`, 1},
	{"channels", `
		%p = pad(%x, @channels)
		%y = conv(%p, @wide)
		return %y, %x`, 1},
	{"pads that depend on the padded size", `
		%p = pad(%x, @ends)
		%y = conv(%p, @w) {auto_pad = "SAME_LOWER", strides = [2, 2]}
		return %y, %x`, 1},
	{"the weights are padded", `
		%p = pad(%x, @crop)
		%y = conv(@image, %p)
		return %y, %x`, 1},
	{"average of what there is", `
		%p = pad(%x, @ends)
		%y = average_pool(%p) {kernel_shape = [3, 3], strides = [2, 2]}
		return %y, %x`, 0},
	{"average that counts its own pads", `
		%p = pad(%x, @same)
		%y = average_pool(%p) {count_include_pad = 1, kernel_shape = [3, 3], pads = [1, 0, 1, 1]}
		return %y, %x`, 0},
	{"average that does not count its own pads", `
		%p = pad(%x, @same)
		%y = average_pool(%p) {kernel_shape = [3, 3], pads = [1, 0, 1, 1]}
		return %y, %x`, 1},
	{"average of windows that reach past the end", `
		%p = pad(%x, @same)
		%y = average_pool(%p) {ceil_mode = 1, kernel_shape = [3, 3], strides = [2, 2]}
		return %y, %x`, 1},
	{"average of small windows", `
		%p = pad(%x, @ends)
		%y = average_pool(%p) {kernel_shape = [2, 2]}
		return %y, %x`, 1},
	{"maximum with minus infinity", `
		%p = pad(%x, @ends, @least)
		%y = max_pool(%p) {dilations = [1, 2], kernel_shape = [3, 3]}
		return %y, %x`, 0},
	{"maximum of a relu with zeros", `
		%r = relu(%x)
		%p = pad(%r, @ends)
		%y = max_pool(%p) {kernel_shape = [3, 3], strides = [2, 2]}
		return %y, %x`, 0},
	{"maximum with zeros", `
		%p = pad(%x, @ends)
		%y = max_pool(%p) {kernel_shape = [3, 3]}
		return %y, %x`, 1},
	{"a convolution with minus infinity", `
		%p = pad(%x, @ends, @least)
		%y = conv(%p, @w)
		return %y, %x`, 1},
	{"in a branch", `
		%p = pad(%x, @ends)
		%y = if(%c) {
			%a = conv(%p, @w)
			return %a
		} {
			%d = conv(%p, @v)
			return %d
		}
		return %y, %x`, 0},
}

const paddedHead = `func @main(%x: f32[2,4,5,6], %c: bool[]) -> (f32[...], f32[...]) {
	weight @w: f32[4,4,3,3]
	weight @v: f32[4,4,3,3]
	weight @one: f32[4,4,1,1]
	weight @each: f32[4,1,3,3]
	weight @wide: f32[4,6,3,3]
	weight @image: f32[1,4,8,8]
	weight @b: f32[4]
	weight @same: i64[8]
	weight @ends: i64[8]
	weight @crop: i64[8]
	weight @channels: i64[8]
	weight @two: i64[4]
	weight @axes: i64[2]
	weight @zero: f32[]
	weight @number: f32[]
	weight @least: f32[]
`

// A program whose pads are moved computes the same, to the bit.
func TestMovedPads(t *testing.T) {
	for _, f := range padded {
		t.Run(f.name, func(t *testing.T) {
			p, err := ir.Parse(paddedHead+f.body+"\n}", op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			given := ir.WeightMap{}
			for _, w := range p.Weights {
				given[w.Name] = signed(w.Type)
			}
			for name, list := range map[string][]int64{
				"same": {0, 0, 1, 1, 0, 0, 1, 1}, "ends": {0, 0, 0, 1, 0, 0, 2, 0}, "crop": {0, 0, -1, 0, 0, 0, 0, -2}, "channels": {0, 1, 0, 0, 0, 1, 0, 0},
				"two": {2, 1, 0, 3}, "axes": {-1, 2},
			} {
				for i, n := range list {
					binary.LittleEndian.PutUint64(given[name][8*i:], uint64(n))
				}
			}
			for name, x := range map[string]float64{"zero": 0, "number": 2, "least": math.Inf(-1)} {
				binary.LittleEndian.PutUint32(given[name], math.Float32bits(float32(x)))
			}
			ctx := &pass.Context{Program: p, Constants: &weights.Overlay{Base: given}}
			if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
				t.Fatal(err)
			}
			plain := p.Clone()
			verify := func(_ pass.Pass, p *ir.Program) error { return ir.VerifyKnown(p, ir.Known(ctx.Constants)) }
			if err := pass.Run(ctx, []pass.Pass{pass.Pads, pass.DCE}, verify); err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(fmt.Sprint(p), "= pad("); got != f.stay {
				t.Errorf("got %d pads, want %d\n%s", got, f.stay, p)
			}
			for _, condition := range []byte{0, 1} {
				want, got := evaluate(t, plain, ctx.Constants, condition), evaluate(t, p, ctx.Constants, condition)
				for i := range want {
					if got[i].Type != want[i].Type || !bytes.Equal(got[i].Data, want[i].Data) {
						t.Errorf("result %d: got %v % x..., want %v % x...", i, got[i].Type, got[i].Data[:16], want[i].Type, want[i].Data[:16])
					}
				}
			}
		})
	}
}
