package acceptance_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// probe is a program whose arena takes no more bytes than those of its largest
// values, because results are put in the bytes of operands.
type probe struct {
	text    string
	arena   int64
	several int64              // with several threads, unless the least memory is asked for; 0: as much
	ints    map[string][]int64 // weights
}

const mib = 1 << 20

// probes compute something large from an input, put it through an operator, and
// return a part of the result or something small.
var probes = map[string]probe{
	"LRN": {text: `func @main(%x: f32[1,64,64,64]) -> (f32[1,64,1,1]) {
		%a = exp(%x)
		%b = lrn(%a) {size = 5}
		%c = global_average_pool(%b)
		return %c
	}`, arena: mib},
	"InstanceNormalization": {text: `func @main(%x: f32[1,64,64,64], %s: f32[64]) -> (f32[1,64,1,1]) {
		%a = exp(%x)
		%b = instance_normalization(%a, %s, %s)
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib},
	"GroupNormalization": {text: `func @main(%x: f32[1,64,64,64], %s: f32[64]) -> (f32[1,64,1,1]) {
		%a = exp(%x)
		%b = group_normalization(%a, %s, %s) {num_groups = 8}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib},
	"CumSum": {text: `func @main(%x: f32[1,64,64,64]) -> (f32[1,64,1,1]) {
		weight @axis: i64[]
		%a = exp(%x)
		%b = cum_sum(%a, @axis) {exclusive = 1}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib, ints: map[string][]int64{"axis": {2}}},
	"one value twice": {text: `func @main(%x: f32[1,64,64,64]) -> (f32[1,64,1,1]) {
		%a = softmax(%x)
		%b = mul(%a, %a)
		%c = global_average_pool(%b)
		return %c
	}`, arena: mib},
	"ReverseSequence": {text: `func @main(%x: f32[64,8,512]) -> (f32[64,8]) {
		weight @n: i64[8]
		weight @axis: i64[1]
		%a = exp(%x)
		%b = reverse_sequence(%a, @n)
		%c = reduce_max(%b, @axis) {keepdims = 0}
		return %c
	}`, arena: mib, ints: map[string][]int64{"axis": {2}, "n": {1, 64, 5, 63, 2, 33, 64, 0}}},
	"BatchNormalization that trains": {text: `func @main(%x: f32[1,64,64,64], %s: f32[64], %v: f32[64]) -> (f32[1,64,1,1]) {
		%a = exp(%x)
		%b, %m, %w = batch_normalization(%a, %s, %s, %s, %v) {training_mode = 1}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib},
	"LSTM": {text: `func @main(%x: f32[3,64,8], %w: f32[1,64,8], %r: f32[1,64,16], %h: f32[1,64,16], %c: f32[1,64,16]) -> (f32[64]) {
		weight @axis: i64[2]
		%a = exp(%h)
		%b = exp(%c)
		_, %n, %m = lstm(%x, %w, %r, _, _, %a, %b)
		%s = add(%n, %m)
		%y = reduce_sum(%s, @axis) {keepdims = 0}
		return %y
	}`, arena: 2 * 4096, ints: map[string][]int64{"axis": {0, 2}}},
	"Cast to f16": {text: `func @main(%x: f32[1,64,64,64]) -> (f16[1,64,1,1]) {
		%a = exp(%x)
		%b = cast(%a) {to = f16}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib, several: mib * 3 / 2},
	"Greater": {text: `func @main(%x: f32[1,64,64,64], %y: f32[1,64,64,64]) -> (i64[1,64,64]) {
		%a = softmax(%x)
		%b = greater(%y, %a)
		%c = cast(%b) {to = u8}
		%d = arg_max(%c) {axis = 3, keepdims = 0}
		return %d
	}`, arena: mib, several: mib * 5 / 4},
	"QuantizeLinear": {text: `func @main(%x: f32[1,64,64,64], %s: f32[]) -> (i64[1,64,64]) {
		%a = exp(%x)
		%b = quantize_linear(%a, %s)
		%d = arg_max(%b) {axis = 3, keepdims = 0}
		return %d
	}`, arena: mib, several: mib * 5 / 4},
	"a square Transpose": {text: `func @main(%x: f32[1,512,512]) -> (f32[1,512,1]) {
		weight @axis: i64[1]
		%a = softmax(%x)
		%b = transpose(%a) {perm = [0, 2, 1]}
		%c = reduce_max(%b, @axis)
		return %c
	}`, arena: mib, ints: map[string][]int64{"axis": {2}}},
	"If": {text: `func @main(%x: f32[1,64,64,64], %k: bool[]) -> (f32[1,64,1,1]) {
		%a = softmax(%x)
		%b = if(%k) {
			%y = relu(%a)
			return %y
		} {
			%z = neg(%a)
			return %z
		}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib},
	"If that returns the value as it is": {text: `func @main(%x: f32[1,64,64,64], %k: bool[]) -> (f32[1,64,1,1]) {
		%a = softmax(%x)
		%b = if(%k) {
			%y = relu(%a)
			%w = exp(%y)
			return %w
		} {
			return %a
		}
		%c = global_max_pool(%b)
		return %c
	}`, arena: mib},
	"Loop": {text: `func @main(%x: f32[1,64,64,64]) -> (f32[1,64,1,1]) {
		weight @n: i64[]
		%a = softmax(%x)
		%b = loop(@n, _, %a) (%i: i64[], %c: bool[], %s: f32[1,64,64,64]) {
			%y = mul(%s, %s)
			%z = exp(%y)
			return %c, %z
		}
		%r = global_max_pool(%b)
		return %r
	}`, arena: mib + 2*64, ints: map[string][]int64{"n": {3}}},
	"Gathers of queries, keys and values": {text: `func @main(%x: f32[3,1,4,64,64]) -> (f32[1,4,64,64]) {
		weight @zero: i64[]
		weight @one: i64[]
		weight @two: i64[]
		%a = exp(%x)
		%q = gather(%a, @zero)
		%k = gather(%a, @one)
		%v = gather(%a, @two)
		%s = mul(%q, %k)
		%y = div(%s, %v)
		return %y
	}`, arena: 3 * 65536, ints: map[string][]int64{"zero": {0}, "one": {1}, "two": {-1}}},
	"Hardmax": {text: `func @main(%x: f32[1,64,64,64]) -> (f32[1,64,1,1]) {
		%a = exp(%x)
		%b = hardmax(%a) {axis = 1}
		%c = global_average_pool(%b)
		return %c
	}`, arena: mib},
}

// Plans of probes take the least bytes, whatever the number of threads, and
// their runs compute what the interpreter does, which puts nothing in place.
func TestInPlaceProbes(t *testing.T) {
	for name, c := range probes {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			p, err := ir.Parse(c.text, op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			table := tableOf(c.ints)
			if err := ir.Infer(p, ir.Known(table)); err != nil {
				t.Fatal(err)
			}
			args, in := drawnInputs(t, p)
			want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, args...)
			if err != nil {
				t.Fatal(err)
			}
			m, err := tenure.LoadProgram(p, table)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			checkProbe(t, m, c.arena, in, want, tenure.WithThreads(1))
			checkProbe(t, m, cmp.Or(c.several, c.arena), in, want, tenure.WithThreads(3))
			checkProbe(t, m, c.arena, in, want, tenure.WithThreads(3), tenure.WithLeastMemory())
		})
	}
}

// tableOf returns weights of type i64.
func tableOf(ints map[string][]int64) ir.WeightMap {
	table := ir.WeightMap{}
	for name, list := range ints {
		for _, v := range list {
			table[name] = binary.LittleEndian.AppendUint64(table[name], uint64(v))
		}
	}
	return table
}

// donated are programs with states that are donated: each comes back as the
// named output, in the same bytes.
var donated = map[string]struct {
	text    string
	states  map[string]string
	threads int                // 0 stands for 2
	arena   int64              // bytes
	ints    map[string][]int64 // weights
}{
	"If": {text: `func @main(%s: f32[1,64,64], %x: f32[1,64,64], %k: bool[]) -> (f32[1,64,64]) {
		%n = if(%k) {
			%y = add(%s, %x)
			return %y
		} {
			return %s
		}
		return %n
	}`, states: map[string]string{"s": "n"}},
	"Loop": {text: `func @main(%s: f32[1,64,64], %x: f32[1,64,64]) -> (f32[1,64,64]) {
		weight @count: i64[]
		%n = loop(@count, _, %s) (%i: i64[], %c: bool[], %p: f32[1,64,64]) {
			%y = add(%p, %x)
			return %c, %y
		}
		return %n
	}`, states: map[string]string{"s": "n"}, arena: 2 * 64, ints: map[string][]int64{"count": {3}}},
	"stacked caches": {text: `func @main(%s: f32[2,2,4,8,16], %x: f32[4,8,16]) -> (f32[2,2,4,8,16]) {
		weight @zero: i64[]
		weight @one: i64[]
		weight @axis: i64[1]
		%l = gather(%s, @zero)
		%m = gather(%s, @one)
		%k = gather(%l, @zero)
		%v = gather(%l, @one)
		%k2 = add(%k, %x)
		%v2 = sub(%v, %x)
		%o, %p = split(%m) {axis = 0, num_outputs = 2}
		%o2 = add(%o, %x)
		%p2 = mul(%p, %k2)
		%a = unsqueeze(%k2, @axis)
		%b = unsqueeze(%v2, @axis)
		%c = concat(%a, %b) {axis = 0}
		%d = concat(%o2, %p2) {axis = 0}
		%e = unsqueeze(%c, @axis)
		%f = unsqueeze(%d, @axis)
		%n = concat(%e, %f) {axis = 0}
		return %n
	}`, states: map[string]string{"s": "n"}, ints: map[string][]int64{"zero": {0}, "one": {1}, "axis": {0}}},
	"LSTM": {text: `func @main(%x: f32[3,64,8], %w: f32[1,64,8], %r: f32[1,64,16], %h: f32[1,64,16], %c: f32[1,64,16]) -> (f32[3,1,64,16], f32[1,64,16], f32[1,64,16]) {
		%y, %hn, %cn = lstm(%x, %w, %r, _, _, %h, %c)
		return %y, %hn, %cn
	}`, states: map[string]string{"h": "hn", "c": "cn"}},
	"f16 of f32": {text: `func @main(%x: f32[33,70]) -> (f16[33,70]) {
		%y = cast(%x) {to = f16}
		return %y
	}`, states: map[string]string{"x": "y"}, threads: 1},
	"GRU": {text: `func @main(%x: f32[3,64,8], %w: f32[1,48,8], %r: f32[1,48,16], %h: f32[1,64,16]) -> (f32[3,1,64,16], f32[1,64,16]) {
		%y, %hn = gru(%x, %w, %r, _, _, %h)
		return %y, %hn
	}`, states: map[string]string{"h": "hn"}},
}

// Donated states come back in their bytes, with what the interpreter computes.
func TestDonatedStates(t *testing.T) {
	for name, c := range donated {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			p, err := ir.Parse(c.text, op.Builtin())
			if err != nil {
				t.Fatal(err)
			}
			table := tableOf(c.ints)
			if err := ir.Infer(p, ir.Known(table)); err != nil {
				t.Fatal(err)
			}
			args, in := drawnInputs(t, p)
			want, err := (&ir.Interpreter{Eval: compute.Eval, Weights: table}).Run(p, args...)
			if err != nil {
				t.Fatal(err)
			}
			m, err := tenure.LoadProgram(p, table)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			opts := []tenure.SessionOption{tenure.WithThreads(cmp.Or(c.threads, 2)), tenure.WithDonated(slices.Collect(maps.Keys(c.states))...)}
			d, err := m.Plan(t.Context(), nil, opts...)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Check(d); err != nil || d.ArenaBytes != c.arena {
				t.Errorf("got an arena of %d bytes (%v), want %d", d.ArenaBytes, err, c.arena)
			}
			s := modeltest.Session(t, m, opts...)
			places := map[string]*byte{}
			for state, output := range c.states {
				x := in[state].(*tensor.Tensor)
				places[output] = modeltest.Address(x)
				in[state] = x.Donate()
			}
			out, err := s.Run(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Release()
			for i, info := range m.Outputs() {
				x := out[info.Name]
				if at := places[info.Name]; at != nil && modeltest.Address(x) != at {
					t.Errorf("output %q is not in the bytes of its state", info.Name)
				}
				if data, _ := x.UnsafeBytes(); !bytes.Equal(data, want[i].Data) {
					t.Errorf("output %q is not that of the interpreter", info.Name)
				}
			}
		})
	}
}

// checkProbe plans and runs a probe.
func checkProbe(t *testing.T, m *tenure.Model, arena int64, in tenure.Inputs, want []op.Arg, opts ...tenure.SessionOption) {
	t.Helper()
	d, err := m.Plan(t.Context(), nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Check(d); err != nil {
		t.Error(err)
	}
	if d.ArenaBytes != arena {
		t.Errorf("%d threads: got an arena of %d bytes, want %d", d.Threads, d.ArenaBytes, arena)
		for _, x := range d.Declined {
			t.Logf("%s: operand %d, %s: %s", x.Where(), x.Operand, x.Value, x.Reason)
		}
	}
	s := modeltest.Session(t, m, opts...)
	for range 2 {
		out, err := s.Run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		for i, info := range m.Outputs() {
			if data, _ := out[info.Name].UnsafeBytes(); !bytes.Equal(data, want[i].Data) {
				t.Errorf("%d threads: output %q is not that of the interpreter", d.Threads, info.Name)
			}
		}
		out.Release()
	}
}

// drawnInputs draws the inputs of a program: numbers from -2 to 2 for floats, 0
// and 1 for others.
func drawnInputs(t *testing.T, p *ir.Program) (args []op.Arg, in tenure.Inputs) {
	t.Helper()
	r := rand.New(rand.NewPCG(18, 2))
	in = tenure.Inputs{}
	for _, v := range p.Body.Params {
		n, err := v.Type.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, max(n, 8))[:n]
		if v.Type.DType == dtype.F32 {
			for i := 0; i < n; i += 4 {
				binary.LittleEndian.PutUint32(data[i:], math.Float32bits(float32(r.Float64()*4-2)))
			}
		} else {
			for i := 0; i < n; i += v.Type.DType.Size() {
				data[i] = byte(r.IntN(2))
			}
		}
		x, err := tensor.FromBytes(v.Type.DType, v.Type.Shape, data)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Release() })
		args = append(args, op.Arg{Type: v.Type, Data: data})
		in[v.Name] = x
	}
	return args, in
}
