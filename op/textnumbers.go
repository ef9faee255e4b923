package op

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var printed = setOf(dtype.I64, dtype.U64, dtype.F64)

// textNumberOps convert between strings and numbers of the widest types; other
// types are cast from and to these.
var textNumberOps = []*Def{
	{
		Name:    "number_to_string",
		Doc:     "writes each number of x as a string: integers whole, floats with up to eight digits and an exponent where that is shorter, NaN, INF or -INF",
		MinArgs: 1, MaxArgs: 1, Infer: inferNumberToString, Alias: Fresh(),
	},
	{
		Name:    "string_to_number",
		Doc:     "reads each string of x, without white space around it, as a decimal number, an infinity or NaN; fractions of integers are cut off",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("to", DTypeKind)}, Infer: inferStringToNumber, Alias: Fresh(),
	},
}

// PrintedWidth is how many bytes a number_to_string writes at most: those of
// -9223372036854775808.
const PrintedWidth = 20

func inferNumberToString(s *Sig) error {
	if err := s.want(0, printed); err != nil {
		return err
	}
	x := s.Args[0].Shape
	if x == nil {
		return s.giveAny(0, dtype.U8)
	}
	if err := s.wantRank(0, 0, MaxRank-1); err != nil {
		return err
	}
	return s.giveText(0, slices.Clone(x.Dims()), shape.N(PrintedWidth))
}

func inferStringToNumber(s *Sig) error {
	if err := s.wantText(0); err != nil {
		return err
	}
	to := s.DType("to")
	if !printed.has(to) {
		return badDType("attribute \"to\": got %s, want %s", to, printed)
	}
	dims, ok := s.textDims(0)
	if !ok {
		return s.giveAny(0, to)
	}
	return s.give(0, to, dims...)
}
