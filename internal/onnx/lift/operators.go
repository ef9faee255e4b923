package lift

import (
	"fmt"
	"maps"

	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// The operator sets of ONNX that are read.
const (
	MinOpset = 6
	MaxOpset = 28
)

// Operator says how nodes of one operator of ONNX are lifted: which calls of
// operators of package op say the same.
type Operator struct {
	From int64 // the first opset that has it, 0 for all that are read
	Till int64 // the last one, 0 for no end

	// Lift lifts a node that reads numbers. If it is nil, the operator of the
	// node's own name has the node's form: the node is [Plain].
	Lift func(*Node)

	// Text lifts a node that reads strings; nil where these are refused.
	// TextOnly says that Lift refuses everything else.
	Text     func(*Node)
	TextOnly bool

	Lists bool // operands may be sequences and optionals

	// Refusal says why nodes of the operator are not read, and what to do
	// instead; the other fields are empty then.
	Refusal string
}

// Tables are the operators that are read, by domain and name. One of another
// domain, which users bring in their registry, needs no entry.
type Tables map[string]map[string]Operator

// Merge returns the rows of several tables, of which no two have one name.
func Merge(list ...map[string]Operator) map[string]Operator {
	all := map[string]Operator{}
	for _, t := range list {
		for name := range t {
			if _, ok := all[name]; ok {
				panic("BUG: onnx: operator " + name + " is in two tables")
			}
		}
		maps.Copy(all, t)
	}
	return all
}

// Since returns an operator that is the same in all opsets from the given one
// on.
func Since(from int64) Operator { return Operator{From: from} }

// Lifted returns an operator that lift lifts, from the given opset on.
func Lifted(from int64, lift func(*Node)) Operator { return Operator{From: from, Lift: lift} }

// lift finds the operator of the node and lifts it: an operator that
// the user brought goes before a function of the model, and that before an
// operator of ONNX.
func (n *Node) lift() {
	if n.Err != nil {
		return
	}
	domain := DomainOf(n.Proto.Domain)
	opset, imported := n.opsets[domain]
	n.Opset = opset
	known := n.Registry.LookupONNX(n.OpName) != nil
	key := functionKey{domain, n.Proto.OpType, n.Proto.Overload}
	if f := n.functions[key]; f != nil && (domain == "" || !known) {
		n.inline(key, f)
		return
	}
	entry, ok := n.tables[domain][n.Proto.OpType]
	if known && domain != "" || !ok && (domain == "" || n.tables[domain] == nil) {
		entry, ok = Since(0), known
	}
	n.Entry = entry
	if ok && !imported && (domain != "" || len(n.result.Opsets) > 0) {
		n.withoutImport(domain)
		imported = domain == ""
		opset = n.Opset
	}
	switch {
	case domain == "" && !imported:
		n.Err = wire.Corruptf("the model imports no opset of ONNX's own domain, want one from %d to %d", MinOpset, MaxOpset)
	case !ok:
		n.Unsupported("%s", noOperator(domain))
	case entry.Refusal != "":
		n.Unsupported("%s", entry.Refusal)
	case imported && opset < entry.From:
		n.Unsupported("the operator exists from opset %d on", entry.From)
	case imported && entry.Till != 0 && opset > entry.Till:
		n.Unsupported("the operator exists up to opset %d", entry.Till)
	case n.Lists != nil && !entry.Lists:
		n.Unsupported("a sequence or optional as an operand")
	case n.readsText():
		n.liftText(entry.Text)
	default:
		n.LiftNumbers()
	}
}

// withoutImport takes a node's operator as the newest version of its domain
// has it, as ONNX Runtime does: tools that fuse nodes into operators of
// com.microsoft forget to import its operators.
func (n *Node) withoutImport(domain string) {
	for _, o := range n.tables[domain] {
		n.Opset = max(n.Opset, o.From, o.Till)
	}
	switch {
	case domain == "":
		n.Opset = MaxOpset
	case n.Entry.Till != 0:
		n.Opset = min(n.Opset, n.Entry.Till)
	}
	note := fmt.Sprintf("the model uses operators of domain %q and does not import them: they are those of version %d", domain, n.Opset)
	if n.Opset == 0 {
		note = fmt.Sprintf("the model uses operators of domain %q and does not import them", domain)
	}
	n.Note(note)
}

// LiftNumbers lifts a node that reads numbers.
func (n *Node) LiftNumbers() {
	if n.Entry.Lift == nil {
		Plain(n)
		return
	}
	n.Entry.Lift(n)
}

// refusedDomains are domains none of whose operators is read, and why.
var refusedDomains = map[string]string{
	"com.microsoft.nchwc":  "ONNX Runtime's optimiser has laid the model out for one processor; save it at the level extended",
	"com.ms.internal.nhwc": "ONNX Runtime's optimiser has laid the model out for one device; save it at the level extended, without that device's execution provider",
	"com.ms.internal.ort":  "ONNX Runtime has rewritten the model for one device; save it at the level extended, without that device's execution provider",
	"ai.onnx.contrib":      "it is of ONNX Runtime's extensions, which cut text and decode files; do that before the model, and choose the values after it as inputs",
	"ai.onnx.training":     "it belongs to training; export the model for inference",
}

// noOperator says why there is no operator of a domain.
func noOperator(domain string) string {
	if why := refusedDomains[domain]; why != "" {
		return why
	}
	return "no such operator"
}
