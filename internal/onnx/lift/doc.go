// Package lift imports the graph of an ONNX file into a program of package ir.
//
//	r, err := lift.Import(m, lift.Options{Registry: op.Builtin(), Operators: tables, Weights: store, FileSize: len(file)})
//
// Programs have the newest form of every operator. An [Operator] of the tables
// has a function that lifts a node to it: it takes the attributes of the
// [Node], makes small constants and intermediate calls where it has to, and
// ends with [Node.Finish], which emits the call whose results are the outputs
// of the node. Most operators need none of this: [Since] says from which opset
// on they are as they are. The tables are those of the packages standard,
// contrib and ml, by domain.
//
// Import inlines functions, imports nested graphs as regions, and resolves
// sequences, which are lists of values here and not in programs. Errors list
// everything in the graph that is not supported. They name the node; errors of
// files that contradict themselves are of the kind [tensor.ErrCorrupt].
//
// Weights go to the store of the caller, which owns them; those that no node
// reads are left out. An import is for one goroutine.
package lift
