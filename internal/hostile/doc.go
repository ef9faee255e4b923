// Package hostile tests package tenure on files that are damaged, cut off,
// contradictory, or absurdly large: each must end in an error or in a run, in
// bounded time and memory, and never in a panic. The package has tests only.
//
//	go test ./internal/hostile -run TestDamagedFiles -flips 10000   # damaged files per model
//	go test ./internal/hostile -fuzz FuzzModel
//
// The models are those of the module's testdata folder and, where they are, of
// the optional test data. Tensors belong to the test that makes them. The tests
// set the limit of package memory, so they run one after the other.
package hostile
