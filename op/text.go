package op

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// textOps work on text: bytes u8[d1,...,dr,width], whose last dimension holds
// one string each, filled up with zeros. Results that have fewer strings than
// operands are bounded, and their kernel sets their types.
var textOps = []*Def{
	{
		Name: "string_normalizer", ONNX: "StringNormalizer",
		Doc:     "removes the stopwords from the strings of x, [n] or [1,n], and converts the others to lower or upper case; returns one empty string if none is left",
		MinArgs: 1, MaxArgs: 1,
		Attrs: []AttrDef{stringAttr("case_change_action", "NONE"), intAttr("is_case_sensitive", 0), stringAttr("locale", ""), {Name: "stopwords", Kind: Strings}},
		Infer: inferStringNormalizer, Bound: boundStringNormalizer, Alias: Fresh(),
	},
	{
		Name: "string_concat", ONNX: "StringConcat", Doc: "appends each string of b to that of a, with broadcasting",
		MinArgs: 2, MaxArgs: 2, Infer: inferStringConcat, Alias: Fresh(),
	},
	{
		Name: "string_equal", Doc: "reports for each pair of strings whether a == b, with broadcasting",
		MinArgs: 2, MaxArgs: 2, Infer: inferStringEqual, Alias: Fresh(),
	},
	{
		Name: "string_split", ONNX: "StringSplit",
		Doc:     "splits each string of x at a delimiter or, without one, at white space; returns rows of parts, padded with empty strings, and the number of parts of each",
		MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: 2,
		Attrs: []AttrDef{stringAttr("delimiter", ""), {Name: "maxsplit", Kind: Int}},
		Infer: inferStringSplit, Bound: boundStringSplit, Alias: Fresh(),
	},
	{
		Name: "string_index", Doc: "returns the index of each string of x in a list of distinct strings; the length of the list for a string that is not in it",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("keys", Strings)}, Infer: inferStringIndex, Alias: Fresh(),
	},
	{
		Name: "regex_full_match", ONNX: "RegexFullMatch", Doc: "reports for each string of x whether a pattern of RE2 matches all of it",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("pattern", String)}, Infer: inferRegexFullMatch, Alias: Fresh(),
	},
	{
		Name: "murmur_hash", Doc: "returns MurmurHash3 in 32 bits of each string of x, or of the bytes of each number; as u32, or i32 if positive is 0",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{intAttr("positive", 1), intAttr("seed", 0)}, Infer: inferMurmurHash, Alias: Fresh(),
	},
}

// AsText returns the type of the strings that a value of this type holds:
// "string[3]" for u8[3,12].
func (t Type) AsText() string {
	if t.Shape == nil {
		return "string[...]"
	}
	dims := t.Shape.Dims()
	s, err := shape.FromDims(dims[:max(len(dims)-1, 0)]...)
	if err != nil {
		return "string[...]" // a size of zero made it a shape
	}
	return "string" + s.String()
}

// wantText checks that an operand holds strings.
func (s *Sig) wantText(arg int) error {
	if err := s.want(arg, setOf(dtype.U8)); err != nil {
		return err
	}
	if err := s.wantRank(arg, 1, MaxRank); err != nil {
		return err
	}
	if isSize(s.textWidth(arg), 0) {
		return badShape("operand %d: got %s, want strings in one byte or more each", arg, s.Args[arg])
	}
	return nil
}

// textDims returns the dimensions of an operand's strings; ok is false when
// not even their number is known.
func (s *Sig) textDims(arg int) (dims []shape.Dim, ok bool) {
	if s.Args[arg].Shape == nil {
		return nil, false
	}
	dims = s.Args[arg].Shape.Dims()
	return dims[:len(dims)-1], true
}

// textWidth returns how many bytes each string of an operand takes.
func (s *Sig) textWidth(arg int) shape.Dim {
	sh := s.Args[arg].Shape
	if sh == nil {
		return shape.Unknown
	}
	return sh.Dim(sh.Rank() - 1)
}

// giveText sets a result to strings of a width.
func (s *Sig) giveText(result int, dims []shape.Dim, width shape.Dim) error {
	return s.give(result, dtype.U8, append(dims, width)...)
}

// CasedWidth is how many bytes a string of width bytes may take in another
// case: what takes two bytes in one may take three in the other, by Unicode's
// mappings of single characters.
func CasedWidth(width int) int { return width + width/2 }

// StringCase returns the case that a string_normalizer converts its strings
// to: "NONE", "LOWER" or "UPPER".
func (s *Sig) StringCase() string { return s.Str("case_change_action") }

// ownCase are the languages whose letters change case by other rules than
// Unicode's mappings of single characters.
var ownCase = []string{"az", "lt", "tr"}

// normalizer checks a string_normalizer and returns the dimensions before the
// strings that are kept, those strings, and their width.
func (s *Sig) normalizer() (before []shape.Dim, count, width shape.Dim, err error) {
	if err := s.wantText(0); err != nil {
		return nil, count, width, err
	}
	change, err := s.wantOneOf("case_change_action", "NONE", "LOWER", "UPPER")
	if err != nil {
		return nil, count, width, err
	}
	if _, err := s.wantFlag("is_case_sensitive"); err != nil {
		return nil, count, width, err
	}
	language, _, _ := strings.Cut(strings.ReplaceAll(s.Str("locale"), "-", "_"), "_")
	for _, l := range ownCase {
		if strings.EqualFold(language, l) {
			return nil, count, width, fmt.Errorf("attribute \"locale\": got %q, want a language whose letters have Unicode's common cases: %w", s.Str("locale"), ErrUnsupported)
		}
	}
	width = s.textWidth(0)
	if n, ok := width.Size(); ok && change != "NONE" {
		width = shape.N(CasedWidth(n))
	} else if change != "NONE" {
		width = shape.Unknown
	}
	dims, ok := s.textDims(0)
	if !ok {
		return nil, count, width, nil
	}
	switch len(dims) {
	case 1:
	case 2:
		if _, fits := unify(dims[0], shape.N(1)); !fits {
			return nil, count, width, badShape("operand 0: got %s, want [n] or [1,n]", s.Args[0].AsText())
		}
		before = []shape.Dim{shape.N(1)}
	default:
		return nil, count, width, badShape("operand 0: got %s, want [n] or [1,n]", s.Args[0].AsText())
	}
	if n, ok := dims[len(dims)-1].Size(); ok {
		count = shape.N(max(n, 1)) // an empty string stands for none
	}
	return before, count, width, nil
}

func inferStringNormalizer(s *Sig) error {
	before, count, width, err := s.normalizer()
	switch {
	case err != nil:
		return err
	case s.Args[0].Shape == nil:
		return s.giveAny(0, dtype.U8)
	case len(s.Attrs.Strings("stopwords")) > 0:
		count = shape.Unknown
	}
	return s.giveText(0, append(before, count), width)
}

func boundStringNormalizer(s *Sig) error {
	before, count, width, err := s.normalizer()
	if err != nil {
		return err
	}
	return s.giveText(0, append(before, count), width)
}

// textPair checks two operands that hold strings and returns the dimensions
// that they have together, false when they are not known.
func (s *Sig) textPair() (dims []shape.Dim, ok bool, err error) {
	if err := s.wantText(0); err != nil {
		return nil, false, err
	}
	if err := s.wantText(1); err != nil {
		return nil, false, err
	}
	a, known := s.textDims(0)
	b, both := s.textDims(1)
	if !known || !both {
		return nil, false, nil
	}
	x, err := shape.FromDims(a...)
	if err != nil {
		return nil, false, err
	}
	y, err := shape.FromDims(b...)
	if err != nil {
		return nil, false, err
	}
	z, err := shape.Broadcast(x, y)
	if err != nil {
		return nil, false, err
	}
	return z.Dims(), true, nil
}

func inferStringConcat(s *Sig) error {
	dims, ok, err := s.textPair()
	if err != nil {
		return err
	}
	if !ok {
		return s.giveAny(0, dtype.U8)
	}
	width := shape.Unknown
	a, sized := s.textWidth(0).Size()
	if b, both := s.textWidth(1).Size(); sized && both {
		width = shape.N(a + b)
	}
	return s.giveText(0, dims, width)
}

func inferStringEqual(s *Sig) error {
	dims, ok, err := s.textPair()
	if err != nil {
		return err
	}
	if !ok {
		return s.giveAny(0, dtype.Bool)
	}
	return s.give(0, dtype.Bool, dims...)
}

func inferStringSplit(s *Sig) error { return s.stringSplit(shape.Unknown) }

// boundStringSplit counts the parts that the longest string may have: with
// white space there is a byte of it between two parts of one byte.
func boundStringSplit(s *Sig) error {
	width, _ := s.textWidth(0).Size()
	parts := (width + 1) / 2
	if d := len(s.Str("delimiter")); d > 0 {
		parts = width/d + 1
	}
	if s.Attrs.Has("maxsplit") {
		parts = int(min(int64(parts-1), s.Int("maxsplit"))) + 1
	}
	return s.stringSplit(shape.N(parts))
}

// stringSplit sets the results for so many parts.
func (s *Sig) stringSplit(parts shape.Dim) error {
	if err := s.wantText(0); err != nil {
		return err
	}
	if s.Attrs.Has("maxsplit") && s.Int("maxsplit") < 0 {
		return badShape("attribute \"maxsplit\": got %d, want 0 or more", s.Int("maxsplit"))
	}
	dims, ok := s.textDims(0)
	for i := range s.Results {
		var err error
		dt := [2]dtype.DType{dtype.U8, dtype.I64}[i]
		switch {
		case !ok:
			err = s.giveAny(i, dt)
		case i == 0:
			err = s.giveText(0, append(append([]shape.Dim{}, dims...), parts), s.textWidth(0))
		default:
			err = s.give(i, dt, dims...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func inferStringIndex(s *Sig) error {
	if err := s.wantText(0); err != nil {
		return err
	}
	if err := s.wantDistinctKeys(); err != nil {
		return err
	}
	dims, ok := s.textDims(0)
	if !ok {
		return s.giveAny(0, dtype.I64)
	}
	return s.give(0, dtype.I64, dims...)
}

// wantDistinctKeys checks the attribute keys.
func (s *Sig) wantDistinctKeys() error {
	seen := map[string]bool{}
	for _, key := range s.Attrs.Strings("keys") {
		if seen[key] {
			return fmt.Errorf("attribute \"keys\": got %.80q twice, want each once: %w", key, ErrUnsupported)
		}
		seen[key] = true
	}
	return nil
}

// FullMatch compiles the pattern of a regex_full_match so that it matches
// whole strings only.
func (s *Sig) FullMatch() (*regexp.Regexp, error) {
	pattern := s.Str("pattern")
	if err := checkPattern("pattern", pattern); err != nil { // alone: one parenthesis must not close ours
		return nil, err
	}
	return regexp.Compile(`\A(?:` + pattern + `)\z`)
}

// hashed are the types of numbers that a murmur_hash takes; those of u8 are
// strings.
var hashed = setOf(dtype.U8, dtype.I32, dtype.U32, dtype.I64, dtype.U64, dtype.F32, dtype.F64)

func inferMurmurHash(s *Sig) error {
	if err := s.want(0, hashed); err != nil {
		return err
	}
	positive, err := s.wantFlag("positive")
	if err != nil {
		return err
	}
	if seed := s.Int("seed"); seed < 0 || seed > math.MaxUint32 {
		return badShape("attribute \"seed\": got %d, want a number of 32 bits without a sign", seed)
	}
	dt := dtype.I32
	if positive {
		dt = dtype.U32
	}
	if s.Args[0].Shape == nil {
		return s.giveAny(0, dt)
	}
	dims := s.Args[0].Shape.Dims()
	if s.Args[0].DType == dtype.U8 {
		if err := s.wantText(0); err != nil {
			return err
		}
		dims, _ = s.textDims(0)
	}
	return s.give(0, dt, dims...)
}

func inferRegexFullMatch(s *Sig) error {
	if err := s.wantText(0); err != nil {
		return err
	}
	if _, err := s.FullMatch(); err != nil {
		return err
	}
	dims, ok := s.textDims(0)
	if !ok {
		return s.giveAny(0, dtype.Bool)
	}
	return s.give(0, dtype.Bool, dims...)
}
