// Package onnxfile writes the ONNX files that the benchmarks run.
//
// A [Graph] collects nodes, declared inputs and outputs, and weights; its
// WriteTo streams the file, so that a weight's numbers exist only while they
// are written. Weights are drawn from a [Source], seeded, so that a file is
// the same on every machine. [Reweigh] turns a public model whose weights are
// ConstantOfShape nodes into a Graph with drawn weights of the same shapes.
//
//	g := onnxfile.New(13)
//	g.Input("x", onnxfile.F32, 32, 1024)
//	g.Weight("w", onnxfile.Uniform(1, 0.05), 1024, 1024)
//	g.Node("MatMul", []string{"x", "w"}, []string{"y"})
//	g.Output("y", onnxfile.F32)
//	_, err := g.WriteTo(file)
//
// A Graph belongs to one goroutine and holds Go memory only.
package onnxfile
