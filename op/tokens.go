package op

import (
	"fmt"
	"regexp"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var tokenAttrs = []AttrDef{
	intAttr("mark", 0), needed("mincharnum", Int), needed("pad_value", String), {Name: "separators", Kind: Strings}, {Name: "tokenexp", Kind: String},
}

// tokenOps cut strings into tokens. A string has as many tokens as its
// characters say, so the last dimension of the results is bounded, and their
// kernels set their types.
var tokenOps = []*Def{
	{
		Name:    "string_tokenize",
		Doc:     "returns the tokens of each string of x as rows, padded with pad_value: the longest matches of tokenexp, the parts between the longest matches of separators or, if tokenexp is a dot or the only separator is empty, the characters",
		MinArgs: 1, MaxArgs: 1, Attrs: tokenAttrs, Infer: inferTokens, Bound: boundTokens, Alias: Fresh(),
	},
	{
		Name:    "string_token_index",
		Doc:     "returns for each token that string_tokenize returns for x its index in a list of distinct strings, or the length of the list for a token that is not in it",
		MinArgs: 1, MaxArgs: 1, Attrs: append(append([]AttrDef{}, tokenAttrs...), needed("keys", Strings)), Infer: inferTokenIndex, Bound: boundTokenIndex, Alias: Fresh(),
	},
}

// Tokenization says how the strings of a string_tokenize are cut.
type Tokenization struct {
	Characters bool     // each character is a token
	Token      string   // a pattern of tokens; "" where there are separators
	Separators []string // patterns, which cut one after the other
	Least      int      // characters of a token
	Mark       bool     // rows begin with "\x02" and end with "\x03", before the padding
	Pad        string
}

// Marks are the strings before and after the tokens of a row.
const (
	TokensBegin = "\x02"
	TokensEnd   = "\x03"
)

// Tokenization returns how a string_tokenize cuts strings, once its patterns
// have proved to be regular expressions of RE2.
func (s *Sig) Tokenization() (z Tokenization, err error) {
	z.Token, z.Separators, z.Pad = s.Str("tokenexp"), s.Attrs.Strings("separators"), s.Str("pad_value")
	z.Mark = s.Int("mark") != 0
	least := s.Int("mincharnum")
	if least < 1 {
		return z, badShape("attribute \"mincharnum\": got %d, want 1 or more", least)
	}
	z.Least = int(min(least, 1<<30))
	if len(z.Separators) > 0 {
		z.Token = "" // as in ONNX Runtime
	} else if z.Token == "" {
		return z, badShape("got no separators and no tokenexp, want one of them")
	}
	z.Characters = z.Token == "." || len(z.Separators) == 1 && z.Separators[0] == ""
	if z.Characters && z.Least > 1 {
		return z, badShape("attribute \"mincharnum\": got %d for tokens that are characters, want 1", z.Least)
	}
	if z.Characters {
		return z, nil
	}
	for _, pattern := range z.Separators {
		if pattern == "" {
			return z, badShape("attribute \"separators\": got an empty one among %d, want patterns", len(z.Separators))
		}
		if err := checkPattern("separators", pattern); err != nil {
			return z, err
		}
	}
	if z.Token != "" {
		return z, checkPattern("tokenexp", z.Token)
	}
	return z, nil
}

// checkPattern returns an error for what is no regular expression of RE2.
func checkPattern(attr, pattern string) error {
	if _, err := regexp.Compile(pattern); err != nil {
		return fmt.Errorf("attribute %q: got %.80q, want a regular expression of RE2: %w: %w", attr, pattern, err, ErrUnsupported)
	}
	return nil
}

// most returns how many columns the tokens of strings of so many bytes have at
// most, marks included.
func (z *Tokenization) most(width int) int {
	n := width / z.Least
	if !z.Characters && z.Token == "" {
		n = (width + 1) / (z.Least + 1) // there is a byte or more between two
	}
	if z.Mark {
		n += 2
	}
	return n
}

// tokens checks the operand, and returns the dimensions of the rows of tokens;
// known is false when not even their number is.
func (s *Sig) tokens(bounded bool) (z Tokenization, dims []shape.Dim, known bool, err error) {
	if err := s.wantText(0); err != nil {
		return z, nil, false, err
	}
	if z, err = s.Tokenization(); err != nil {
		return z, nil, false, err
	}
	strings, known := s.textDims(0)
	columns := shape.Unknown
	if width, ok := s.textWidth(0).Size(); bounded && ok {
		columns = shape.N(z.most(width))
	}
	return z, append(append([]shape.Dim{}, strings...), columns), known, nil
}

// giveTokens sets the type of the tokens, which are as wide as the strings, and
// wide enough for padding.
func (s *Sig) giveTokens(bounded bool) error {
	z, dims, known, err := s.tokens(bounded)
	if err != nil {
		return err
	}
	if !known {
		return s.giveAny(0, dtype.U8)
	}
	width := s.textWidth(0)
	if n, ok := width.Size(); ok {
		width = shape.N(max(n, len(z.Pad)))
	} else if len(z.Pad) > 1 {
		width = shape.Unknown
	}
	return s.giveText(0, dims, width)
}

func inferTokens(s *Sig) error { return s.giveTokens(false) }

func boundTokens(s *Sig) error { return s.giveTokens(true) }

func (s *Sig) giveTokenIndex(bounded bool) error {
	if err := s.wantDistinctKeys(); err != nil {
		return err
	}
	_, dims, known, err := s.tokens(bounded)
	if err != nil {
		return err
	}
	if !known {
		return s.giveAny(0, dtype.I64)
	}
	return s.give(0, dtype.I64, dims...)
}

func inferTokenIndex(s *Sig) error { return s.giveTokenIndex(false) }

func boundTokenIndex(s *Sig) error { return s.giveTokenIndex(true) }
