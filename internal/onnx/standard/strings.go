package standard

import "github.com/tenure-go/tenure/internal/onnx/lift"

// stringTable are the operators that work on strings and on nothing else.
var stringTable = map[string]lift.Operator{
	"StringNormalizer": lift.Lifted(10, liftStringsToStrings),
	"StringConcat":     lift.Lifted(20, liftStringsToStrings),
	"StringSplit":      lift.Lifted(20, liftStringsToStrings),
	"RegexFullMatch":   lift.Lifted(20, liftStrings),
}

// liftStrings lifts an operator that takes strings and whose results are
// numbers.
func liftStrings(n *lift.Node) {
	if n.WantText() {
		lift.Plain(n)
	}
}

// liftStringsToStrings lifts an operator whose first output holds strings, as
// its operands do.
func liftStringsToStrings(n *lift.Node) {
	if n.WantText() {
		lift.Plain(n)
		n.MarkText(1)
	}
}

// liftEqualText compares strings, whose widths may differ.
func liftEqualText(n *lift.Node) {
	n.NoMoreAttrs()
	if n.WantText() {
		n.Finish("string_equal", n.Args)
	}
}

// textConstant binds an output to a weight of strings.
func textConstant(n *lift.Node, out string, list []string, dims ...int) {
	n.NoMoreAttrs()
	if v := n.TextWeight(n.ValueName(out), list, dims...); v != nil {
		n.Values[out] = &lift.Binding{Value: v}
	}
}
