package op

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// dtypes is a set of element types.
type dtypes uint64

func setOf(types ...dtype.DType) dtypes {
	var d dtypes
	for _, t := range types {
		d |= 1 << t
	}
	return d
}

// The sets that shape rules name. They follow the type constraints of ONNX;
// strings are in none of them: they are bytes here, u8.
var (
	floats    = setOf(dtype.F32, dtype.F64, dtype.F16, dtype.BF16)
	signed    = setOf(dtype.I8, dtype.I16, dtype.I32, dtype.I64)
	unsigned  = setOf(dtype.U8, dtype.U16, dtype.U32, dtype.U64)
	integers  = signed | unsigned
	numeric   = floats | integers
	wide      = floats | setOf(dtype.I32, dtype.I64, dtype.U32, dtype.U64) // what sums are made in
	boolean   = setOf(dtype.Bool)
	complexes = setOf(dtype.C64, dtype.C128)
	plain     = numeric | boolean | complexes // whole bytes, moved as they are
	float8    = setOf(dtype.F8E4M3FN, dtype.F8E4M3FNUZ, dtype.F8E5M2, dtype.F8E5M2FNUZ, dtype.F8E8M0)
	packed    = setOf(dtype.F4E2M1, dtype.I4, dtype.U4, dtype.I2, dtype.U2)
	stored    = plain | float8 | packed
	indices   = setOf(dtype.I32, dtype.I64)
	int64s    = setOf(dtype.I64)
)

func (d dtypes) has(t dtype.DType) bool { return d>>t&1 != 0 }

// String returns the set as an error names it: "f32, f64 or bf16".
func (d dtypes) String() string {
	var names []string
	for t := dtype.Invalid + 1; t.IsValid(); t++ {
		if d.has(t) {
			names = append(names, t.String())
		}
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " or " + names[n-1]
	}
	return strings.Join(names, "")
}

// want checks the element type of an operand; an absent one passes.
func (s *Sig) want(arg int, set dtypes) error {
	if s.Has(arg) && !set.has(s.Args[arg].DType) {
		return badDType("operand %d: got %s, want an element type of %s", arg, s.Args[arg], set)
	}
	return nil
}

// wantLike checks that an operand, if present, has the element type of another.
func (s *Sig) wantLike(arg, other int) error {
	if s.Has(arg) && s.Args[arg].DType != s.Args[other].DType {
		return badDType("operand %d: got %s, want the element type of operand %d, %s", arg, s.Args[arg], other, s.Args[other])
	}
	return nil
}

// wantRank checks the rank of an operand; an absent one and one of unknown
// rank pass. hi below 0 means no upper bound.
func (s *Sig) wantRank(arg, lo, hi int) error {
	if !s.Has(arg) || s.Args[arg].Shape == nil {
		return nil
	}
	r := s.Args[arg].Shape.Rank()
	switch {
	case r >= lo && (hi < 0 || r <= hi):
		return nil
	case hi < 0:
		return badShape("operand %d: got %s, want %d dimensions or more", arg, s.Args[arg], lo)
	case lo == hi:
		return badShape("operand %d: got %s, want %d dimensions", arg, s.Args[arg], lo)
	}
	return badShape("operand %d: got %s, want %d to %d dimensions", arg, s.Args[arg], lo, hi)
}

// wantOne checks that an operand, if present, has one element.
func (s *Sig) wantOne(arg int) error {
	if err := s.wantRank(arg, 0, 1); err != nil {
		return err
	}
	if s.Has(arg) && s.Args[arg].IsStatic() && s.Args[arg].Shape.NumElements() != 1 {
		return badShape("operand %d: got %s, want one element", arg, s.Args[arg])
	}
	return nil
}

// wantVector checks that an operand, if present, is the list of one number
// per channel: rank 1, with the size of dim.
func (s *Sig) wantVector(arg int, dim shape.Dim, meaning string) error {
	if err := s.wantRank(arg, 1, 1); err != nil || !s.Has(arg) || s.Args[arg].Shape == nil {
		return err
	}
	if _, ok := unify(s.Args[arg].Shape.Dim(0), dim); !ok {
		return badShape("operand %d: got %s, want [%s], one element per %s", arg, s.Args[arg], dim, meaning)
	}
	return nil
}

// wantOneOf checks the value of a string attribute.
func (s *Sig) wantOneOf(attr string, values ...string) (string, error) {
	got := s.Str(attr)
	for _, v := range values {
		if got == v {
			return got, nil
		}
	}
	return "", fmt.Errorf("attribute %q: got %q, want one of %q: %w", attr, got, slices.Clone(values), ErrUnsupported)
}

// wantFlag checks an integer attribute that is 0 or 1.
func (s *Sig) wantFlag(attr string) (bool, error) {
	switch v := s.Int(attr); v {
	case 0, 1:
		return v == 1, nil
	default:
		return false, fmt.Errorf("attribute %q: got %d, want 0 or 1: %w", attr, v, ErrUnsupported)
	}
}

func errAbsent(arg int) error { return fmt.Errorf("operand %d is absent, want a value", arg) }

func badShape(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, shape.ErrShape)...)
}

func badDType(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, dtype.ErrDType)...)
}

func intAttr(name string, value int64) AttrDef { return AttrDef{Name: name, Kind: Int, Default: value} }
func floatAttr(name string, value float32) AttrDef {
	// ONNX files hold attributes in single precision: the default must equal
	// the number read from a file that states the default.
	return AttrDef{Name: name, Kind: Float, Default: float64(value)}
}
func stringAttr(name, value string) AttrDef {
	return AttrDef{Name: name, Kind: String, Default: value}
}
func intsAttr(name string) AttrDef { return AttrDef{Name: name, Kind: Ints} }

func needed(name string, kind AttrKind) AttrDef {
	return AttrDef{Name: name, Kind: kind, Needed: true}
}
