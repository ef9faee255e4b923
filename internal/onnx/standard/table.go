package standard

import (
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/onnx/lift"
)

// Table returns the operators of ONNX's own domain, by name.
func Table() map[string]lift.Operator {
	all := lift.Merge(
		Functions(elementwise.Functions(), elementwise.Binaries()), elementwiseTable, reduceTable, normTable, convTable, poolingTable, linearTable, quantizeTable, attentionTable, recurrentTable, selectionTable,
		shapeTable, indexingTable, resizeTable, constantTable, controlTable, filterTable, loopTable, sequenceTable, einsumTable, signalTable, gatedTable, stringTable, experimentalTable, randomTable,
	)
	edit := func(name string, change func(o *lift.Operator)) {
		o := all[name]
		change(&o)
		all[name] = o
	}
	for name, text := range textMoves {
		edit(name, func(o *lift.Operator) { o.Text = text })
	}
	edit("Equal", func(o *lift.Operator) { o.Text = liftEqualText })
	for name := range stringTable {
		edit(name, func(o *lift.Operator) { o.Text, o.TextOnly = o.Lift, true })
	}
	edit("ThresholdedRelu", func(o *lift.Operator) { o.From = 0 }) // ONNX has it from opset 10 on, ONNX Runtime in older ones too
	edit("Identity", func(o *lift.Operator) { o.Lists = true })
	for name := range sequenceTable {
		edit(name, func(o *lift.Operator) { o.Lists = true })
	}
	return all
}
