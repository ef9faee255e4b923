// Package randomprogram draws programs of package ir for tests. Its own tests
// compile and run them, and compare the results with the interpreter and with a
// second run: values, memory, and what stopped, failed and panicking runs leave
// behind.
//
//	go test ./internal/randomprogram -rapid.checks 20000 -rapid.seed 7 -rapid.nofailfile -timeout 2h
//
// TestAnyLength draws programs of open dimensions and control flow, each of
// which is loaded once and runs at many sizes (DrawOpen, which the tests of
// other packages use too). TestRandomPrograms draws programs of known sizes,
// TestRandomDynamicPrograms those of values whose size depends on data. Without
// flags they draw a few, the same each time. A drawn program and the bytes of
// its weights belong to the caller, on the Go heap. Drawing needs the rapid.T
// of one try, which is for one goroutine. Tests run one after the other.
//
//	rapid.Check(t, func(t *rapid.T) {
//		o := randomprogram.DrawOpen(t)
//		types := o.Sizes(t)
//		inputs := o.Inputs(types, 1)
//		...
//	})
package randomprogram
