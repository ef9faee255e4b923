// Package acceptance tests what only whole models show: operators that a user
// brings, branches and loops, outputs whose size depends on data, every way in
// which a run ends, packed, compressed and shared weights, and tensors that
// pass between runs, other libraries and other processes. One file adds
// operators to the table, the import and the kernels, as CONTRIBUTING describes
// it. The package itself is empty.
//
// Its tests enter by package tenure, as programs do, and write the files of
// their models with package onnxtest. Tensors belong to the test that makes
// them, and every test checks that nothing is left when it ends. Tests run one
// after the other.
//
//	go test ./internal/acceptance -run TestEveryEnding
package acceptance
