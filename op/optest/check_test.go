package optest_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/shape"
)

// increment is an operator without fault: x + 1 for bytes.
func increment() *op.Def {
	return &op.Def{
		Name: "acme.increment", MinArgs: 1, MaxArgs: 2, Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error { s.Results[0] = s.Args[0]; return nil },
		Kernel: func(c *op.Call) error {
			for i, v := range c.In[0].Data {
				c.Out[0].Data[i] = v + 1
			}
			return nil
		},
	}
}

// A kernel that puts its operands together is tested with those in place.
func TestCheckParts(t *testing.T) {
	join := &op.Def{
		Name: "acme.join", MinArgs: 2, MaxArgs: 2,
		Infer: func(s *op.Sig) error {
			n := shape.Unknown
			if s.IsStatic() {
				n = shape.N(s.Args[0].Shape.NumElements() + s.Args[1].Shape.NumElements())
			}
			t, err := shape.FromDims(n)
			s.Results[0] = op.Type{DType: dtype.U8, Shape: t}
			return err
		},
		Alias: op.Fresh().OfParts(func(s *op.Sig, at []int) bool {
			at[0], at[1] = 0, s.Args[0].Shape.NumElements()
			return true
		}),
	}
	at := func(c *op.Call) []byte { return c.Out[0].Data[len(c.In[0].Data):] }
	for _, test := range []struct {
		kernel func(c *op.Call) error
		want   string
	}{
		{func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); copy(at(c), c.In[1].Data); return nil }, ""},
		{func(c *op.Call) error {
			clear(c.Out[0].Data)
			copy(c.Out[0].Data, c.In[0].Data)
			copy(at(c), c.In[1].Data)
			return nil
		}, "operand 0 as a part of the result: "},
	} {
		join.Kernel = test.kernel
		x := optest.Of([]uint8{1, 2, 3}, 3)
		err := optest.Check(join, optest.Case{Args: []optest.Operand{x, optest.Of([]uint8{4, 5}, 2)}})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

func TestCheckPasses(t *testing.T) {
	x := optest.Of([]uint8{1, 2, 3, 5, 8, 13}, 2, 3)
	for name, change := range map[string]func(*op.Def){
		"same":       func(*op.Def) {},
		"fresh":      func(d *op.Def) { d.Alias = op.Fresh() },
		"undeclared": func(d *op.Def) { d.Alias = op.Alias{} },
		"scratch": func(d *op.Def) {
			d.Scratch = func(*op.Sig) (int, error) { return 100, nil }
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error {
				for i := range c.Scratch {
					c.Scratch[i] = byte(i)
				}
				return kernel(c)
			}
		},
		"impure": func(d *op.Def) {
			d.Impure = true
			n := byte(0)
			d.Kernel = func(c *op.Call) error {
				for i := range c.Out[0].Data {
					n++
					c.Out[0].Data[i] = n
				}
				return nil
			}
		},
		"view": func(d *op.Def) {
			d.Alias = op.ViewOf(0)
			d.Kernel = func(c *op.Call) error { copy(c.Out[0].Data, c.In[0].Data); return nil }
		},
	} {
		d := increment()
		change(d)
		if err := optest.Check(d, optest.Case{Args: []optest.Operand{x}}, optest.Case{Args: []optest.Operand{x, x}}); err != nil {
			t.Errorf("%s: got error %v", name, err)
		}
	}
}

// beyond is the byte at an offset from the start of a slice, in its bounds or
// not.
func beyond(data []byte, at int) *byte {
	return (*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(data)), at))
}

// Each fault is seen, and named.
func TestCheckSeesFaults(t *testing.T) {
	for want, change := range map[string]func(d *op.Def){
		"result 0 in place of operand 0 (same): result 0: got byte": func(d *op.Def) {
			d.Kernel = func(c *op.Call) error {
				n := len(c.Out[0].Data)
				for i := range c.Out[0].Data {
					c.Out[0].Data[i] = c.In[0].Data[n-1-i]
				}
				return nil
			}
		},
		"result 0 in place of operand 0 (accumulate)": func(d *op.Def) {
			d.Alias = op.Aliases(op.Rule{Kind: op.Accumulate})
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { clear(c.Out[0].Data); return kernel(c) }
		},
		"operand 0: got byte": func(d *op.Def) {
			d.Alias = op.Fresh()
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { err := kernel(c); c.In[0].Data[3]++; return err }
		},
		"with other bytes in results and scratch: result 0": func(d *op.Def) {
			d.Kernel = func(c *op.Call) error { c.Out[0].Data[0] = c.In[0].Data[0] + 1; return nil } // the rest stays
		},
		"result 0: got byte 0x0 written at 6": func(d *op.Def) {
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { *beyond(c.Out[0].Data, 6) = 0; return kernel(c) }
		},
		"result 0: got byte 0x0 written at -1": func(d *op.Def) {
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { *beyond(c.Out[0].Data, -1) = 0; return kernel(c) }
		},
		"operand 0: got byte 0x0 written at 6": func(d *op.Def) {
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { *beyond(c.In[0].Data, 6) = 0; return kernel(c) }
		},
		"scratch: got byte 0x0 written at 64": func(d *op.Def) {
			d.Scratch = func(*op.Sig) (int, error) { return 64, nil }
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { *beyond(c.Scratch, 64) = 0; return kernel(c) }
		},
		"with other bytes in results and scratch": func(d *op.Def) {
			d.Scratch = func(*op.Sig) (int, error) { return 64, nil }
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error { err := kernel(c); c.Out[0].Data[0] += c.Scratch[9]; return err }
		},
		"at another place in memory: result 0": func(d *op.Def) {
			kernel := d.Kernel
			d.Kernel = func(c *op.Call) error {
				err := kernel(c)
				c.Out[0].Data[0] = byte(uintptr(unsafe.Pointer(unsafe.SliceData(c.In[0].Data))) & 63)
				return err
			}
		},
		"result 0 is a view of operand 0 at 0: got byte": func(d *op.Def) { d.Alias = op.ViewOf(0) },
		"got 6 bytes at 1 of 6, want them inside": func(d *op.Def) {
			d.Alias = op.Aliases(op.Rule{Kind: op.View, Offset: func(*op.Sig, int) (int, bool) { return 1, true }})
		},
		"operand 0 is a part of the result from [0 0] on: got byte": func(d *op.Def) {
			d.Alias = op.Fresh().OfParts(func(*op.Sig, []int) bool { return true })
		},
		"kernel panicked: no": func(d *op.Def) { d.Kernel = func(*op.Call) error { panic("no") } },
		"kernel fails":        func(d *op.Def) { d.Kernel = func(*op.Call) error { return errors.New("kernel fails") } },
		"unknown ranks: shape rule: panics": func(d *op.Def) {
			d.Infer = func(s *op.Sig) error {
				_ = s.Args[0].Shape.Dims()[0]
				s.Results[0] = s.Args[0]
				return nil
			}
		},
		"unknown sizes: shape rule: acme.increment: size is unknown": func(d *op.Def) {
			d.Infer = func(s *op.Sig) error {
				if !s.Args[0].IsStatic() {
					return fmt.Errorf("size is unknown")
				}
				s.Results[0] = s.Args[0]
				return nil
			}
		},
		"unknown values: shape rule: got result 0 of u8[4], want room for u8[2,3]": func(d *op.Def) {
			d.Infer = func(s *op.Sig) error {
				s.Results[0] = op.Type{DType: dtype.U8, Shape: shape.MustOf(4)}
				if s.Known != nil {
					s.Results[0] = s.Args[0]
				}
				return nil
			}
		},
		"got result 0 of u8[...] from operands that are all known": func(d *op.Def) {
			d.Infer = func(s *op.Sig) error { s.Results[0].DType = dtype.U8; return nil }
		},
		"not supported": func(d *op.Def) { d.Kernel = nil },
	} {
		d := increment()
		change(d)
		err := optest.Check(d, optest.Case{Name: "bytes", Args: []optest.Operand{optest.Of([]uint8{1, 2, 3, 5, 8, 13}, 2, 3)}})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "acme.increment: bytes: ") {
			t.Errorf("got error %v\nwant %q", err, want)
		}
	}
}

// Check holds results to those of a reference, and a refusal to its text.
func TestCheckComparesWithWant(t *testing.T) {
	half := &op.Def{
		Name: "acme.half", MinArgs: 1, MaxArgs: 1, Alias: op.SameAs(0),
		Infer: func(s *op.Sig) error {
			if s.Results[0] = s.Args[0]; s.Args[0].Shape != nil && s.Args[0].Shape.Rank() != 1 {
				return fmt.Errorf("got %s, want a vector", s.Args[0])
			}
			return nil
		},
		Kernel: func(c *op.Call) error {
			for i := 0; i < len(c.In[0].Data); i += 4 {
				v := math.Float32frombits(binary.LittleEndian.Uint32(c.In[0].Data[i:]))
				binary.LittleEndian.PutUint32(c.Out[0].Data[i:], math.Float32bits(v/2))
			}
			return nil
		},
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := []optest.Operand{optest.Of([]float32{3, -4000, nan, inf}, 4)}
	of := func(v ...float32) []optest.Operand { return []optest.Operand{optest.Of(v, len(v))} }
	for want, c := range map[string]optest.Case{
		"":                       {Args: x, Want: of(1.5, -2000, nan, inf)},
		" ":                      {Args: x, Want: of(1.5009, -2001.9, nan, inf), Within: 1e-3},
		"  ":                     {Args: []optest.Operand{optest.Random(dtype.F32, 2, 2)}, Fails: "got f32[2,2], want a vector"},
		"got byte 0x0 at 0":      {Args: x, Want: of(1.5001, -2000, nan, inf)},
		"element 1: got -2000":   {Args: x, Want: of(1.5, -2002.1, nan, inf), Within: 1e-3},
		"element 0: got 1.5":     {Args: x, Want: of(1.5016, -2000, nan, inf), Within: 1e-3},
		"element 2: got NaN":     {Args: x, Want: of(1.5, -2000, 0, inf), Within: 1e-3},
		"element 3: got +Inf":    {Args: x, Want: of(1.5, -2000, nan, -inf), Within: 1e-3},
		"want f32[3]":            {Args: x, Want: of(1.5, -2000, nan)},
		"got 1 results, want 2":  {Args: x, Want: append(of(1.5, -2000, nan, inf), of(1)...)},
		"got error <nil>":        {Args: x, Fails: "vector"},
		"want one with \"matrix": {Args: []optest.Operand{optest.Random(dtype.F32, 2, 2)}, Fails: "matrix"},
	} {
		switch err := optest.Check(half, c); {
		case strings.TrimSpace(want) == "" && err != nil:
			t.Errorf("got error %v, want none", err)
		case strings.TrimSpace(want) != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestCheckWantsWholeCases(t *testing.T) {
	x := optest.Of([]uint8{1}, 1)
	branch := increment()
	branch.Regions = 2
	for want, err := range map[string]error{
		"got no cases":                   optest.Check(increment()),
		"got an operator with regions":   optest.Check(branch, optest.Case{Args: []optest.Operand{x}}),
		"got 3 bytes for u8[1]":          optest.Check(increment(), optest.Case{Args: []optest.Operand{{Type: x.Type, Data: []byte{1, 2, 3}}}}),
		"got 0 bytes for u8[...]":        optest.Check(increment(), optest.Case{Args: []optest.Operand{{Type: op.Type{DType: dtype.U8}}}}),
		`attribute "x" is given twice`:   optest.Check(increment(), optest.Case{Args: []optest.Operand{x}, Attrs: []op.Attr{{Name: "x", Value: 1.0}, {Name: "x", Value: 1.0}}}),
		"got 3 operands, want 1 to 2":    optest.Check(increment(), optest.Case{Args: []optest.Operand{x, x, x}}),
		"case 1: shape rule: acme.incre": optest.Check(increment(), optest.Case{Args: []optest.Operand{x}}, optest.Case{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
	}
}

func TestRandomOperands(t *testing.T) {
	a, b := optest.Random(dtype.F32, 3, 4), optest.Random(dtype.F32, 3, 4)
	if string(a.Data) != string(b.Data) || len(a.Data) != 48 || a.String() != "f32[3,4]" {
		t.Errorf("got %v and %v, want the same 48 bytes", a, b)
	}
	for i := 0; i < len(a.Data); i += 4 {
		if bits := binary.LittleEndian.Uint32(a.Data[i:]); bits>>23&0xff > 128 {
			t.Errorf("got bits %#x, want numbers from -4 to 4", bits)
		}
	}
	for _, v := range optest.Random(dtype.Bool, 100).Data {
		if v > 1 {
			t.Errorf("got bool %d, want 0 or 1", v)
		}
	}
}

// A user's operator is held to its declarations in one call.
func ExampleCheck() {
	def := increment()
	cases := []optest.Case{
		{Name: "matrix", Args: []optest.Operand{optest.Random(dtype.U8, 3, 4)}},
		{Name: "empty", Args: []optest.Operand{optest.Of([]uint8{}, 0, 4)}},
	}
	fmt.Println(optest.Check(def, cases...))

	def.Kernel = func(c *op.Call) error { // the rows change places: not element by element
		for i := range c.Out[0].Data {
			c.Out[0].Data[i] = c.In[0].Data[(i+4)%12]
		}
		return nil
	}
	err := optest.Check(def, cases[0])
	fmt.Println(strings.Contains(err.Error(), "in place of operand 0 (same)"))
	// Output:
	// <nil>
	// true
}
