package tenure_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// pinnedOnce are programs whose sizes depend on the values of inputs or on
// data, that have loops, or a branch that does not fit at some sizes. Each is
// met with a list of inputs, see inputsOf. A weight is the number that its name
// ends in (n for minus).
var pinnedOnce = []struct {
	name       string
	text       string
	inputs     []string
	structures int  // at most
	fails      bool // for some inputs
}{
	{name: "range", text: `
		func @f(%x: f32[1], %n: i64[]) {
			weight @i64_0: i64[]
			weight @i64_1: i64[]
			%r = range(@i64_0, %n, @i64_1)
			%q = cast(%r) {to = f32}
			%y = add(%q, %x)
			%z = exp(%y)
			return %z
		}`, inputs: []string{"1;=5", "1;=3", "1;=7", "1;=11", "1;=5", "1;=1", "1;=0", "1;=64", "1;=2"}, structures: 3},
	{name: "expand", text: `
		func @f(%x: f32[n,1], %t: i64[2]) {
			%e = expand(%x, %t)
			%y = exp(%e)
			return %y
		}`, inputs: []string{"3,1;=3,4", "3,1;=3,5", "5,1;=5,2", "3,1;=1,7", "2,1;=2,1", "5,1;=5,1", "3,1;=3,0", "4,1;=1,3"}, structures: 4},
	{name: "reshape", text: `
		func @f(%x: f32[n,4], %t: i64[2]) {
			%e = exp(%x)
			%r = reshape(%e, %t)
			%y = softmax(%r) {axis = -1}
			return %y
		}`, inputs: []string{"3,4;=2,6", "3,4;=6,2", "5,4;=-1,10", "6,4;=8,3", "3,4;=0,4", "5,4;=5,4", "2,4;=8,-1", "3,4;=3,-1"}, structures: 2},
	{name: "constant of shape", text: `
		func @f(%x: f32[n], %t: i64[2]) {
			%c = constant_of_shape(%t) {value = 2.5}
			%y = add(%c, %x)
			%z = relu(%y)
			return %z
		}`, inputs: []string{"5;=3,5", "5;=4,5", "5;=7,5", "3;=3,3", "1;=3,4", "2;=9,2", "1;=5,6", "4;=1,4", "4;=0,4"}, structures: 6},
	{name: "slice", text: `
		func @f(%x: f32[n,4], %from: i64[1], %to: i64[1]) {
			weight @i64_0: i64[1]
			%e = exp(%x)
			%s = slice(%e, %from, %to, @i64_0)
			%y = relu(%s)
			return %y, %e
		}`, inputs: []string{"9,4;=2;=5", "9,4;=3;=7", "5,4;=1;=3", "9,4;=0;=9", "9,4;=-3;=-1", "5,4;=4;=5", "7,4;=0;=3", "9,4;=5;=5", "7,4;=0;=99"}, structures: 5},
	{name: "tile", text: `
		func @f(%x: f32[n,2], %k: i64[2]) {
			%e = exp(%x)
			%t = tile(%e, %k)
			%y = relu(%t)
			return %y
		}`, inputs: []string{"3,2;=2,3", "3,2;=4,1", "5,2;=1,2", "3,2;=1,1", "5,2;=3,3", "2,2;=0,1"}, structures: 4},
	{name: "resize", text: `
		func @f(%x: f32[1,2,h,w], %sizes: i64[4]) {
			%e = relu(%x)
			%r = resize(%e, _, _, %sizes) {mode = "nearest"}
			%y = add(%r, %r)
			return %y
		}`, inputs: []string{"1,2,4,4;=1,2,8,8", "1,2,4,4;=1,2,6,8", "1,2,3,5;=1,2,6,10", "1,2,4,4;=1,2,3,3", "1,2,4,4;=1,2,4,4", "1,2,3,3;=1,2,3,3"}, structures: 3},
	{name: "top k, padding and splits", text: `
		func @f(%x: f32[3,n], %k: i64[1], %pads: i64[4]) {
			%v, %i = top_k(%x, %k)
			%p = pad(%v, %pads) {mode = "constant"}
			%y = exp(%p)
			return %y, %i
		}`, inputs: []string{"3,5;=2;=0,1,0,1", "3,7;=4;=0,1,0,2", "3,9;=3;=1,0,1,0", "3,5;=5;=0,0,0,0", "3,4;=2;=0,0,0,0", "3,9;=9;=2,2,2,2"}, structures: 3},
	{name: "one value decides what another one does then", text: `
		func @f(%x: f32[n], %a: i64[2], %b: i64[2]) {
			%e = expand(%x, %a)
			%g = exp(%e)
			%r = reshape(%g, %b)
			%y = softmax(%r) {axis = -1}
			return %y
		}`, inputs: []string{"4;=3,4;=2,6", "4;=5,4;=10,2", "6;=2,6;=3,4", "4;=3,4;=3,4", "4;=1,4;=2,2", "2;=7,2;=2,7"}, structures: 3},
	{name: "a value of more elements than can decide", text: `
		func @f(%x: f32[n], %i: i64[m]) {
			%s = shape(%i)
			%e = expand(%x, %s)
			%g = gather(%e, %i) {axis = 0}
			return %g
		}`, inputs: []string{"1;=0,1,0", "1;=0,1,0,3,3", "5;=4,1,2,0,0", "1;=1,1"}, structures: 3},
	{name: "a branch that does not fit", text: `
		func @f(%x: f32[n], %y: f32[m], %c: bool[]) {
			%r = if(%c) {
				%a = add(%x, %y)
				%b = exp(%a)
				return %b
			} {
				%d = concat(%x, %y) {axis = 0}
				%e = exp(%d)
				return %e
			}
			%z = relu(%r)
			return %z
		}`, inputs: []string{"3;5;=0", "4;7;=0", "2;11;=0", "3;3;=0", "3;3;=1", "5;5;=1", "7;5;=1", "1;4;=1", "1;6;=1", "9;2;=0"}, structures: 5, fails: true},
	{name: "branches of two sizes", text: `
		func @f(%x: f32[n,2], %c: bool[]) {
			weight @i64_0: i64[1]
			weight @i64_2: i64[1]
			%e = exp(%x)
			%r = if(%c) {
				%s = slice(%e, @i64_0, @i64_2, @i64_0)
				%a = relu(%s)
				return %a
			} {
				%b = neg(%e)
				return %b
			}
			%z = add(%r, %r)
			return %z
		}`, inputs: []string{"5,2;=0", "7,2;=1", "3,2;=1", "3,2;=0", "2,2;=1", "1,2;=0", "4,2;=1"}, structures: 3},
	{name: "loop", text: `
		func @f(%x: f32[n,3], %k: i64[]) {
			weight @f32_m: f32[3,3]
			%r = loop(%k, _, %x) (%i: i64[], %c: bool[], %a: f32[n,3]) {
				%c2 = copy(%c)
				%p = matmul(%a, @f32_m)
				%b = relu(%p)
				return %c2, %b
			}
			%y = neg(%r)
			return %y
		}`, inputs: []string{"5,3;=2", "7,3;=3", "3,3;=0", "1,3;=1", "11,3;=2", "0,3;=2"}, structures: 3},
	{name: "stacked iterations", text: `
		func @f(%x: f32[n,3]) {
			weight @i64_0: i64[]
			weight @i64_1: i64[1]
			%s = shape(%x) {start = 0, end = 1}
			%k = squeeze(%s)
			%z = gather(%x, @i64_0) {axis = 0}
			%r, %t = loop(%k, _, %z) (%i: i64[], %c: bool[], %a: f32[3]) {
				%c2 = copy(%c)
				%row = gather(%x, %i) {axis = 0}
				%b = add(%a, %row)
				%o = exp(%row)
				return %c2, %b, %o
			}
			return %r, %t
		}`, inputs: []string{"5,3", "7,3", "3,3", "1,3", "11,3", "2,3"}, structures: 2},
	{name: "growing loop state", text: `
		func @f(%x: f32[n,2], %y: f32[m,2], %k: i64[]) {
			%r, %s = loop(%k, _, %x) (%i: i64[], %c: bool[], %a: f32[?,2]) {
				%c2 = copy(%c)
				%b = concat(%a, %y) {axis = 0}
				%n = shape(%b) {start = 0, end = 1}
				return %c2, %b, %n
			}
			%z = exp(%r)
			return %z, %s
		}`, inputs: []string{"5,2;1,2;=3", "2,2;3,2;=2", "7,2;2,2;=5", "1,2;1,2;=1", "0,2;4,2;=2", "3,2;0,2;=3", "3,2;1,2;=0"}, structures: 3},
	{name: "nested loops with a branch and sizes that are computed inside", text: `
		func @f(%x: f32[n,2], %k: i64[]) {
			weight @i64_2: i64[]
			weight @i64_n: i64[1]
			weight @f32_3: f32[]
			%r = loop(%k, _, %x) (%i: i64[], %c: bool[], %a: f32[n,2]) {
				%c2 = copy(%c)
				%s = shape(%a)
				%q = loop(@i64_2, _, %a) (%j: i64[], %d: bool[], %b: f32[n,2]) {
					%d2 = copy(%d)
					%l = reshape(%b, @i64_n)
					%e = mul(%l, @f32_3)
					%g = reshape(%e, %s)
					return %d2, %g
				}
				%odd = cast(%i) {to = bool}
				%h = if(%odd) {
					%p = relu(%q)
					return %p
				} {
					%o = neg(%q)
					return %o
				}
				return %c2, %h
			}
			return %r
		}`, inputs: []string{"5,2;=2", "7,2;=1", "3,2;=3", "1,2;=1", "11,2;=0"}, structures: 2},
	{name: "a loop over a size that a value decides", text: `
		func @f(%x: f32[1,2], %t: i64[2]) {
			weight @i64_2: i64[]
			%e = expand(%x, %t)
			%r, %o = loop(@i64_2, _, %e) (%i: i64[], %c: bool[], %a: f32[?,2]) {
				%c2 = copy(%c)
				%s = shape(%a)
				%z = constant_of_shape(%s) {value = 1.5}
				%b = add(%a, %z)
				%q = exp(%b)
				return %c2, %b, %q
			}
			return %r, %o
		}`, inputs: []string{"1,2;=3,2", "1,2;=5,2", "1,2;=7,2", "1,2;=1,2", "1,2;=2,2", "1,2;=0,2"}, structures: 4},
	{name: "sizes that depend on data", text: `
		func @f(%x: f32[n,3]) {
			%p = relu(%x)
			%i = non_zero(%p)
			%t = transpose(%i)
			%g = gather_nd(%x, %t)
			%e = exp(%g)
			%s = reduce_sum(%e) {keepdims = 1}
			return %e, %s, %p
		}`, inputs: []string{"5,3", "7,3", "2,3", "1,3", "11,3", "0,3"}, structures: 3},
}

// inputsOf reads inputs that stand between semicolons: "=1,2" are integers or
// bools, for a parameter of as many elements as its type says, and "3,2" are
// the sizes of floats.
func inputsOf(t *testing.T, p *ir.Program, text string) (args []op.Arg) {
	t.Helper()
	for i, one := range strings.Split(text, ";") {
		typ := p.Body.Params[i].Type
		var numbers []int
		list, isValue := strings.CutPrefix(one, "=")
		for _, s := range strings.Split(list, ",") {
			numbers = append(numbers, must(strconv.Atoi(s)))
		}
		var a op.Arg
		switch {
		case !isValue:
			typ.Shape = shape.MustOf(numbers...)
			values := make([]float32, typ.Shape.NumElements())
			for k := range values {
				values[k] = float32((k*3+i)%5 - 2)
			}
			a.Data = floatsOf(values...)
		case typ.DType == dtype.Bool:
			typ.Shape = shape.Scalar()
			a.Data = []byte{byte(numbers[0])}
		default:
			if typ.Shape.Rank() > 0 {
				typ.Shape = shape.MustOf(len(numbers))
			}
			for _, n := range numbers {
				a.Data = binary.LittleEndian.AppendUint64(a.Data, uint64(n))
			}
		}
		a.Type = typ
		args = append(args, a)
	}
	return args
}

// weightsByName returns weights whose elements are the numbers that their names
// end in.
func weightsByName(p *ir.Program) ir.WeightMap {
	table := ir.WeightMap{}
	for _, w := range p.Weights {
		_, digits, _ := strings.Cut(w.Name, "_")
		n, err := strconv.Atoi(strings.Replace(digits, "n", "-1", 1))
		for k := range w.Type.Shape.NumElements() {
			switch {
			case w.Type.DType == dtype.F32 && err != nil:
				table[w.Name] = append(table[w.Name], floatsOf(float32(k%3)-1)...)
			case w.Type.DType == dtype.F32:
				table[w.Name] = append(table[w.Name], floatsOf(float32(n))...)
			default:
				table[w.Name] = binary.LittleEndian.AppendUint64(table[w.Name], uint64(n))
			}
		}
	}
	return table
}

// TestStructuresOfValues meets each program with all inputs in one model, in
// two orders, and compares with a model that was loaded for each.
func TestStructuresOfValues(t *testing.T) {
	memorytest.Check(t)
	for _, c := range pinnedOnce {
		t.Run(c.name, func(t *testing.T) {
			p := must(ir.Parse(c.text, op.Builtin()))
			table := weightsByName(p)
			for _, step := range []int{1, len(c.inputs) - 1} {
				m := must(tenure.LoadProgram(p, table))
				s := must(m.NewSession())
				failed := 0
				for i := range c.inputs {
					at := c.inputs[i*step%len(c.inputs)]
					got, gotErr := runOnce(t, s, p, at)
					fresh := must(tenure.LoadProgram(p, table))
					alone := must(fresh.NewSession())
					want, wantErr := runOnce(t, alone, p, at)
					alone.Close()
					fresh.Close()
					if (gotErr == nil) != (wantErr == nil) {
						t.Fatalf("%s: got the error %v, want %v as of a model that was loaded for it", at, gotErr, wantErr)
					}
					if gotErr != nil {
						failed++
						continue
					}
					results := must((&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, inputsOf(t, p, at)...))
					for k := range want {
						if got[k] != want[k] {
							t.Errorf("%s: output %d: got % x, want % x as of a model that was loaded for it", at, k, got[k], want[k])
						}
						if typ, _, _ := strings.Cut(want[k], " "); typ != results[k].Type.String() {
							t.Errorf("%s: output %d: got a value of type %s, want %s", at, k, typ, results[k].Type)
						}
					}
				}
				f := m.Structures()
				splits := 0
				for _, n := range f.Split {
					splits += n
				}
				if splits != f.Kept+f.Evictions-1 {
					t.Errorf("got %d reasons for %d structures, want one for each but the first: %v", splits, f.Kept, f.Split)
				}
				if len(f.Pinned) > 0 || f.Kept > c.structures || f.Kept+f.Evictions+f.Instances != f.Compiled || f.Instances == 0 || (failed > 0) != c.fails {
					t.Errorf("got %+v and %d errors, want at most %d structures, and instances", f, failed, c.structures)
				}
				s.Close()
				m.Close()
			}
		})
	}
}

// runOnce runs the model with inputs as of inputsOf and returns the type and
// the bytes of each output.
func runOnce(t *testing.T, s *tenure.Session, p *ir.Program, inputs string) (list []string, err error) {
	t.Helper()
	in := tenure.Inputs{}
	for i, a := range inputsOf(t, p, inputs) {
		x := must(tensor.FromBytes(a.DType, a.Shape, bytes.Clone(a.Data)))
		defer x.Release()
		in[p.Body.Params[i].Name] = x
	}
	out, err := s.Run(context.Background(), in)
	if err != nil {
		return nil, err
	}
	defer out.Release()
	for _, info := range s.Model().Outputs() {
		x := out[info.Name]
		data, _ := x.UnsafeBytes()
		list = append(list, fmt.Sprintf("%s%s %s", x.DType(), x.Shape(), data))
	}
	return list, nil
}

// TestSplitByValue asks for a branch by a value that decides a size too: the
// report says that the value made another program.
func TestSplitByValue(t *testing.T) {
	memorytest.Check(t)
	p := must(ir.Parse(`
		func @f(%x: f32[n], %t: i64[2]) {
			weight @i64_0: i64[]
			weight @i64_2: i64[]
			%k = gather(%t, @i64_0) {axis = 0}
			%c = greater(%k, @i64_2)
			%r = if(%c) {
				%a = exp(%x)
				return %a
			} {
				%b = abs(%x)
				return %b
			}
			%o = expand(%r, %t)
			%q = exp(%o)
			return %q
		}`, op.Builtin()))
	m := must(tenure.LoadProgram(p, weightsByName(p)))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	for _, at := range []string{"3;=4,3", "3;=4,3", "3;=2,3", "5;=2,5"} {
		must(runOnce(t, s, p, at))
	}
	f := m.Structures()
	if want := map[string]int{"value of an input: value": 1}; f.Kept != 2 || f.Compiled != 3 || f.Instances != 1 || !maps.Equal(f.Split, want) {
		t.Errorf("got %+v, want 2 structures for 3 plans, split by %v", f, want)
	}
}

// TestLoopStateDecidesNothing runs a loop that appends to its state, as a
// decoder does to the tokens, with other values of the state: the plan is the
// same.
func TestLoopStateDecidesNothing(t *testing.T) {
	memorytest.Check(t)
	p := must(ir.Parse(`
		func @decode(%tokens: i64[1,n], %k: i64[]) {
			weight @i64_n: i64[1]
			weight @i64_7: i64[]
			%r = loop(%k, _, %tokens) (%i: i64[], %c: bool[], %a: i64[1,?]) {
				%c2 = copy(%c)
				%last = gather(%a, @i64_n) {axis = 1}
				%next = add(%last, @i64_7)
				%b = concat(%a, %next) {axis = 1}
				return %c2, %b
			}
			return %r
		}`, op.Builtin()))
	m := must(tenure.LoadProgram(p, weightsByName(p)))
	defer m.Close()
	s := must(m.NewSession())
	defer s.Close()
	for n := int64(1); n < 6; n++ {
		for first := range int64(3) {
			tokens := make([]int64, n)
			tokens[n-1] = first
			x, k := must(tensor.Of(tokens, 1, int(n))), must(tensor.Of([]int64{n}))
			out := must(s.Run(context.Background(), tenure.Inputs{"tokens": x, "k": k}))
			for _, info := range m.Outputs() {
				got := must(tensor.Values[int64](out[info.Name]))
				want := slices.Clone(tokens)
				for i := range n {
					want = append(want, first+7*(i+1))
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v, want %v", got, want)
				}
			}
			out.Release()
			x.Release()
			k.Release()
		}
	}
	if stats, f := s.Stats(), m.Structures(); stats.Compiled != 5 || f.Kept != 1 || f.Instances != 4 {
		t.Errorf("got %+v, %+v, want 5 plans, of one structure", stats, f)
	}
}
