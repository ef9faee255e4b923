// Package onnx reads ONNX files: a model into a program of package ir and the
// table of its weights, and the tensors that stand beside models as inputs and
// outputs.
//
//	m, err := onnx.Load("model.onnx", onnx.Options{})
//	if err != nil {
//		return err
//	}
//	defer m.Close()
//	fmt.Print(m.Program)
//
// Operator sets [MinOpset] to [MaxOpset] are read. The program has the newest
// form of every operator; what older sets say in another way is lifted to it:
// an attribute that became an operand is a small constant weight, the Softmax
// of before 13 is a softmax over a flattened operand, and so on. Functions of
// the model are inlined, sequences resolved: they must be lists of values whose
// length and positions are known at load. What is not supported is reported at
// once for the whole model, as an [*UnsupportedError].
//
// The package is the front of those in its folder internal: wire decodes files,
// lift imports graphs, and standard, contrib and ml have the operators of each
// domain, one file and one table per family.
//
// Values of the program have the names of the file, calls the names of their
// nodes. Types are inferred with the operator table; types that the file
// declares are compared with them. What contradicts itself in a file and has
// one meaning all the same, as ONNX Runtime reads it, is a note of the model.
//
// # Faults
//
// A file may hold anything. A fault of the encoding names the field and the
// byte offset, a fault of the graph names the node. Memory stays in
// proportion to the file and the tensors that it declares, and external data
// are read from the model's folder only.
//
// # Memory
//
// [Load] maps the file and enters each weight into the store of package
// internal/weights, which has its bytes from then on: those that lie aligned in
// the file are used there, others are copied. [Model.Close] closes the store;
// programs stay valid without their weights. [ReadTensor] copies.
//
// # Concurrency
//
// A loaded [Model] may be read from any goroutine. Close must be the last call.
package onnx
