package onnx

import (
	"maps"

	"github.com/tenure-go/tenure/onnx/internal/wire"
)

// operator says how nodes of one operator of ONNX are lifted to the operator
// table.
type operator struct {
	from int64 // the first opset that has it, 0 for all that are read
	till int64 // the last one, 0 for no end
	lift func(*node)
}

// operators are those of ONNX's own domain, by name: one table per file, by
// family. An operator of another domain, which users bring in their registry,
// needs no entry.
var operators map[string]operator

// contrib are those of contribDomain that are put together from ours.
var contrib map[string]operator

func init() { // not an initialiser: lifting a branch reads the table again
	operators = merge(
		elementwiseTable, reduceTable, normTable, convTable, poolingTable, linearTable, quantizeTable, attentionTable, recurrentTable, selectionTable, composedTable,
		shapeTable, indexingTable, resizeTable, constantTable, controlTable, filterTable, loopTable, sequenceTable, einsumTable, signalTable, gatedTable, stringTable,
	)
}

// foreign are the operators of other domains, by domain.
var foreign map[string]map[string]operator

func init() {
	contrib = merge(contribTable, contribAttentionTable, groupQueryTable, contribQuantizeTable)
	foreign = map[string]map[string]operator{contribDomain: contrib, mlDomain: mlTable}
}

func merge(tables ...map[string]operator) map[string]operator {
	all := map[string]operator{}
	for _, t := range tables {
		for name := range t {
			if _, ok := all[name]; ok {
				panic("BUG: onnx: operator " + name + " is in two tables")
			}
		}
		maps.Copy(all, t)
	}
	return all
}

// since is an operator that every opset says in the newest form.
func since(from int64) operator { return operator{from: from, lift: plain} }

// lifted is an operator that older opsets say in another way.
func lifted(from int64, lift func(*node)) operator { return operator{from: from, lift: lift} }

// lift finds out what the node's operator is and lifts it: an operator that
// the user brought goes before a function of the model, and that before an
// operator of ONNX.
func (n *node) lift() {
	if n.err != nil {
		return
	}
	domain := domainOf(n.proto.Domain)
	opset, imported := n.opsets[domain]
	n.opset = opset
	known := n.reg.LookupONNX(n.opName) != nil
	key := functionKey{domain, n.proto.OpType, n.proto.Overload}
	if f := n.functions[key]; f != nil && (domain == "" || !known) {
		n.inline(key, f)
		return
	}
	entry, ok := operators[n.proto.OpType]
	if table := foreign[domain]; table != nil && !known {
		entry, ok = table[n.proto.OpType]
	} else if domain != "" || !ok {
		entry, ok = since(0), known
	}
	switch {
	case domain == "" && !imported:
		n.err = wire.Corruptf("the model imports no opset of ONNX's own domain, want one from %d to %d", MinOpset, MaxOpset)
	case !ok:
		n.unsupported("no such operator")
	case !imported:
		n.err = wire.Corruptf("the model imports no opset of domain %q", domain)
	case opset < entry.from:
		n.unsupported("the operator exists from opset %d on", entry.from)
	case entry.till != 0 && opset > entry.till:
		n.unsupported("the operator exists up to opset %d", entry.till)
	case n.lists != nil && !(domain == "" && takesLists[n.proto.OpType]):
		n.unsupported("a sequence or optional as an operand")
	case n.readsText():
		n.liftText()
	default:
		entry.lift(n)
	}
}
