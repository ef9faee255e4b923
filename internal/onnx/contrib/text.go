package contrib

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// textTable are the operators that work on strings.
var textTable = map[string]lift.Operator{
	"MurmurHash3": {From: 1, Lift: liftMurmurHash, Text: liftMurmurHash},
	"Tokenizer":   {From: 1, Lift: liftTokenizer, Text: liftTokenizer, TextOnly: true},
}

// liftMurmurHash hashes strings or numbers of 32 and 64 bits.
func liftMurmurHash(n *lift.Node) {
	attrs := []op.Attr{lift.IntAttr("positive", lift.TakeOr(n, "positive", int64(1))), lift.IntAttr("seed", lift.TakeOr(n, "seed", int64(0)))}
	if n.NoMoreAttrs(); !n.Operands(1, 1) {
		return
	}
	if x := n.Args[0]; x.Type.DType == dtype.U8 && !n.IsText[x] {
		n.Fail("got %s, want strings, or numbers of 32 or 64 bits: %w", x.Type, dtype.ErrDType)
		return
	}
	n.Finish("murmur_hash", n.Args, attrs...)
}

// liftTokenizer cuts strings into tokens.
func liftTokenizer(n *lift.Node) {
	if !n.WantText() || !n.Operands(1, 1) {
		return
	}
	attrs := []op.Attr{lift.IntAttr("mark", lift.TakeOr(n, "mark", int64(0)))}
	least, given := lift.Take[int64](n, "mincharnum")
	pad, padded := lift.Take[string](n, "pad_value")
	if n.Err == nil && (!given || !padded) {
		n.Fail("got no mincharnum or no pad_value, want both")
	}
	attrs = append(attrs, lift.IntAttr("mincharnum", least), op.Attr{Name: "pad_value", Value: pad})
	if list, ok := lift.Take[[]string](n, "separators"); ok && len(list) > 0 {
		attrs = append(attrs, op.Attr{Name: "separators", Value: list})
	}
	if token, ok := lift.Take[string](n, "tokenexp"); ok {
		attrs = append(attrs, op.Attr{Name: "tokenexp", Value: token})
	}
	if n.NoMoreAttrs(); n.Err != nil {
		return
	}
	x := n.Args[0]
	n.Finish("string_tokenize", []*ir.Value{x}, attrs...)
	n.MarkText()
	n.LookUpBy(func(n *lift.Node, keys []string) *ir.Value {
		return n.Call("string_token_index", []*ir.Value{x}, append(slices.Clip(attrs), op.Attr{Name: "keys", Value: keys})...)
	})
}
