package exec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/plan"
)

// Values lie where they are boxes of others along any axis, unless something
// keeps them from it.
func TestBoxesInPlace(t *testing.T) {
	for _, test := range []struct {
		name, text   string
		arena        int64    // bytes
		parts, boxes int      // in place
		copied       []string // reasons
	}{
		{"two producers", `func @f(%x: f32[4,128], %y: f32[4,128]) -> (f32[4,256]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 1}
  %d = softmax(donate %c) {axis = 1}
  return %d
}`, 0, 2, 0, nil},
		{"two producers of images, into a convolution", `func @f(%x: f32[2,8,16,16], %y: f32[2,8,16,16]) -> (f32[2,4,16,16]) {
  weight @w: f32[4,16,1,1]
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 1}
  %d = conv(%c, @w)
  return %d
}`, 32 << 10, 2, 0, nil},
		{"three logs into an output", `func @f(%x: f32[4,128], %y: f32[4,128], %z: f32[4,128]) -> (f32[4,384]) {
  %a = log(%x)
  %b = log(%y)
  %c = log(%z)
  %d = concat(%a, %b, %c) {axis = 1}
  return %d
}`, 0, 3, 0, nil},
		{"chains in place, and a nested concat of other axes", `func @f(%x: f32[2,2,128], %y: f32[2,2,128], %z: f32[2,4,256]) -> (f32[2,8,256]) {
  %a = neg(%x)
  %b = relu(donate %a)
  %c = neg(%y)
  %d = concat(%b, %c) {axis = 2}
  %e = neg(%y)
  %f = neg(%x)
  %g = concat(%e, %f) {axis = 2}
  %h = neg(%z)
  %i = concat(%d, %h, %g) {axis = 1}
  return %i
}`, 0, 7, 0, nil},
		{"a split that is strided", `func @f(%x: f32[4,256]) -> (f32[4,128]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 1, num_outputs = 2}
  %c = add(%h, %t)
  return %c
}`, 4 << 10, 0, 2, nil},
		{"a split of an input", `func @f(%x: f32[4,256]) -> (f32[4,128]) {
  %h, %t = split(%x) {axis = 1, num_outputs = 2}
  %c = add(%h, %t)
  return %c
}`, 0, 0, 2, nil},
		{"a split whose part is overwritten", `func @f(%x: f32[4,256]) -> (f32[4,128]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 1, num_outputs = 2}
  %b = softmax(%h) {axis = 1}
  %c = softmax(donate %t) {axis = 1}
  %d = softmax(donate %c) {axis = 1}
  %e = add(%b, %d)
  return %e
}`, 6 << 10, 0, 2, nil},
		{"heads of a projection", `func @f(%x: f32[8,16], %w: f32[16,384]) -> (f32[8,2,64]) {
  weight @ints_8_2_64: i64[3]
  %p = matmul(%x, %w)
  %q, %k, %v = split(%p) {axis = 1, num_outputs = 3}
  %a: f32[8,2,64] = reshape(%q, @ints_8_2_64)
  %b: f32[8,2,64] = reshape(%k, @ints_8_2_64)
  %c: f32[8,2,64] = reshape(%v, @ints_8_2_64)
  %d = add(%a, %b)
  %e = mul(%d, %c)
  return %e
}`, 16 << 10, 0, 6, nil},
		{"rows of a donated input", `func @f(donate %x: f32[4,512], %y: f32[4,128]) -> (f32[4,512]) {
  weight @i64_0: i64[1]
  weight @i64_128: i64[1]
  weight @i64_256: i64[1]
  weight @last: i64[1]
  weight @one: i64[1]
  %h: f32[4,128] = slice(%x, @i64_0, @i64_128, @one)
  %t: f32[4,256] = slice(%x, @i64_256, @last, @one)
  %n = neg(%y)
  %c = concat(%h, %n, %t) {axis = 1}
  return %c
}`, 0, 3, 2, nil},
		{"a pad around an image", `func @f(%x: f32[2,128,128]) -> (f32[2,130,130]) {
  weight @ints_0_1_1_0_1_1: i64[6]
  %a = neg(%x)
  %b: f32[2,130,130] = pad(%a, @ints_0_1_1_0_1_1)
  return %b
}`, 0, 1, 0, nil},
		{"a split with an output", `func @f(%x: f32[6,768]) -> (f32[6,256], f32[6,256]) {
  %a = neg(%x)
  %h, %t, %u = split(%a) {axis = 1, num_outputs = 3}
  %c = add(%h, %t)
  return %c, %u
}`, 18 << 10, 0, 2, []string{"an output needs"}},
		{"a dense block of several samples", `func @f(%x: f32[2,4,128]) -> (f32[2,1,128]) {
  weight @one: i64[1]
  %a = neg(%x)
  %b = relu(%a)
  %c = concat(%a, %b) {axis = 1}
  %d = exp(%c)
  %e = reduce_max(%d, @one)
  %f = concat(%a, %b, %e) {axis = 1}
  %g = exp(%f)
  %h = reduce_max(%g, @one)
  return %h
}`, 18 << 10, 5, 0, nil},
		{"maps that are resized and transposed convolutions, into a convolution", `func @f(%x: f32[2,4,8,8], %y: f32[2,8,16,16]) -> (f32[2,4,16,16]) {
  weight @i64_16: i64[1]
  weight @t: f32[4,8,2,2]
  weight @u: f32[4,20,3,3]
  weight @ints_2_4_16_16: i64[4]
  %a: f32[2,8,16,16] = conv_transpose(%x, @t) {strides = [2, 2]}
  %b: f32[2,4,16,16] = resize(%x, _, _, @ints_2_4_16_16)
  %c = relu(%y)
  %d = concat(%a, %b, %c) {axis = 1}
  %e: f32[2,4,16,16] = conv(%d, @u) {pads = [1, 1, 1, 1]}
  return %e
}`, 40 << 10, 3, 0, nil},
		{"convolutions side by side, into a pool", `func @f(%x: f32[1,2,16,16], %y: f32[1,2,16,16]) -> (f32[1,4,16,8]) {
  weight @w: f32[4,2,3,3]
  weight @v: f32[4,2,1,1]
  %a: f32[1,4,16,16] = conv(%x, @w) {pads = [1, 1, 1, 1]}
  %b: f32[1,4,16,16] = conv(%y, @v)
  %c = concat(%a, %b) {axis = 2}
  %d: f32[1,4,16,8] = max_pool(%c) {kernel_shape = [2, 2], strides = [2, 2]}
  return %d
}`, 8 << 10, 2, 0, nil},
		{"rows of an image, into convolutions", `func @f(%x: f32[1,2,8,256]) -> (f32[1,2,6,126], f32[1,3,4,128]) {
  weight @one: i64[1]
  weight @i64_3: i64[1]
  weight @i64_128: i64[1]
  weight @last: i64[1]
  weight @i64_2: i64[1]
  weight @i64_6: i64[1]
  weight @w: f32[2,2,3,3]
  weight @v: f32[3,2,1,1]
  %a = neg(%x)
  %h: f32[1,2,8,128] = slice(%a, @i64_128, @last, @i64_3)
  %b: f32[1,2,6,126] = conv(%h, @w)
  %r: f32[1,2,4,128] = slice(%h, @i64_2, @i64_6, @i64_2)
  %c: f32[1,3,4,128] = conv(%r, @v)
  return %b, %c
}`, 16 << 10, 0, 2, nil},
		{"sequences of two layers, side by side", `func @f(%x: f32[3,2,128]) -> (f32[3,2,128]) {
  weight @w: f32[1,512,128]
  weight @r: f32[1,512,128]
  weight @u: f32[1,512,256]
  weight @ints_3_2_128: i64[3]
  %a = neg(%x)
  %y: f32[3,1,2,128] = lstm(%a, @w, @r) {hidden_size = 128}
  %b: f32[3,2,128] = reshape(%y, @ints_3_2_128)
  %c = concat(%a, %b) {axis = 2}
  %z: f32[3,1,2,128] = lstm(%c, @u, @r) {hidden_size = 128}
  %d: f32[3,2,128] = reshape(%z, @ints_3_2_128)
  return %d
}`, 6 << 10, 2, 1, nil},
		{"squares that are transposed in place, and parts of another result", `func @f(%x: f32[2,256,256], %y: f32[2,256,256]) -> (f32[2,512,256], f32[2,512,256]) {
  %a = neg(%x)
  %b: f32[2,256,256] = transpose(donate %a) {perm = [0, 2, 1]}
  %c = neg(%y)
  %d = concat(%b, %c) {axis = 1}
  %e = relu(%x)
  %f = relu(%y)
  %g = concat(%e, %f) {axis = 1}
  return %d, %g
}`, 512 << 10, 3, 0, []string{"transpose needs it in one piece"}},
		{"a running sum of a part", `func @f(%x: f32[4,256]) -> (f32[4,256]) {
  weight @i64_0: i64[1]
  %h, %t = split(%x) {axis = 1, num_outputs = 2}
  %a = cum_sum(%h, @i64_0)
  %c = concat(%a, %t) {axis = 1}
  return %c
}`, 0, 1, 2, []string{"not donated"}},
		{"short pieces", `func @f(%x: f32[64,4], %y: f32[64,4]) -> (f32[64,8]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 1}
  return %c
}`, 2 << 10, 0, 0, []string{"pieces of 16 bytes", "pieces of 16 bytes"}},
		{"short pieces that only transposes read", `func @f(%x: f32[8,2,4,16]) -> (f32[4,8,1,16], f32[4,8,1,16]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 1, num_outputs = 2}
  %c = transpose(%h) {perm = [2, 0, 1, 3]}
  %d = transpose(%t) {perm = [2, 0, 1, 3]}
  return %c, %d
}`, 4 << 10, 0, 2, nil},
		{"short pieces that something else reads, too", `func @f(%x: f32[8,2,4,16]) -> (f32[4,8,1,16], f32[4,8,1,16]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 1, num_outputs = 2}
  %c = transpose(%h) {perm = [2, 0, 1, 3]}
  %r = relu(%t)
  %d = transpose(%r) {perm = [2, 0, 1, 3]}
  return %c, %d
}`, 6 << 10, 0, 1, []string{"pieces of 256 bytes"}},
		{"a value that is overwritten before the other part is read", `func @f(%x: f32[4,128], %y: f32[4,128]) -> (f32[4,256], f32[4,128]) {
  %a = neg(%x)
  %b = relu(%y)
  %c = concat(%a, %b) {axis = 1}
  %d = neg(donate %c)
  %e = add(%a, %b)
  return %d, %e
}`, 4 << 10, 0, 0, []string{"needed", "needed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := runBoth(t, parse(t, test.text), 1)
			parts, boxes, copied := 0, 0, []string{}
			for _, x := range d.InPlace {
				switch {
				case x.Kind == plan.AliasPart:
					parts++
				case x.Kind == plan.AliasView && len(strided(d, x.Value)) > 0:
					boxes++
				}
			}
			for _, x := range d.Declined {
				if slices.Contains([]string{"concat", "split", "slice", "pad"}, x.Op) {
					copied = append(copied, x.Reason)
				}
			}
			if d.ArenaBytes != test.arena || parts != test.parts || boxes != test.boxes || !slices.EqualFunc(copied, test.copied, strings.Contains) {
				t.Errorf("got an arena of %d bytes, %d parts and %d boxes in place, copies %q, want %d, %d, %d, %q", d.ArenaBytes, parts, boxes, copied, test.arena, test.parts, test.boxes, test.copied)
			}
		})
	}
}

// strided returns the strides of a value in a plan.
func strided(d *plan.Plan, name string) []int64 {
	for _, v := range d.Values {
		if v.Name == name {
			return v.Strides
		}
	}
	return nil
}
