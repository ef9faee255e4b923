// Package randomprogram draws programs of package ir, compiles and runs them, and compares the results with the interpreter and
// with a second run: values, memory, and what stopped, failed and panicking runs leave behind. The package itself is empty.
//
//	go test ./internal/randomprogram -rapid.checks 20000 -rapid.seed 7 -rapid.nofailfile -timeout 2h
//
// TestRandomPrograms draws programs of known sizes, TestRandomDynamicPrograms those of values whose size depends on data. Without
// flags they draw a few, the same each time. Tensors belong to the program that is run. Tests run one after the other.
package randomprogram
