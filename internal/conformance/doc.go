// Package conformance runs the public test cases of ONNX and the models of the
// optional test data, and compares the documents that list the supported
// operators (docs/operators.md, docs/onnx-support.md) with the tables and the
// outcomes. The package itself names the cases and reads their archives.
//
//	go run ./internal/conformance/fetch    # the cases, from the package onnx of PyPI
//	go test ./internal/conformance -run TestConformance -v
//	go generate ./internal/conformance    # writes testdata/conformance.txt and both documents
//
// testdata/conformance.txt has every case with its outcome. A case that does
// not pass needs a row in the table of excluded ones. Tensors belong to the
// test that makes them. Tests run one after the other.
package conformance
