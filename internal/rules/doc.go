// Package rules tests the rules for the sources of this module: the import rule
// of ARCHITECTURE.md, the documentation of every package, the sizes of files
// and functions, words that belong to one machine, the modules inside this one,
// and that no exported function panics on zero values. The package itself is
// empty.
//
//	go test ./internal/rules -run TestImportRule
//
// The tests read files of the whole module and own no tensors. They run in the
// module's folder, one after the other.
package rules
