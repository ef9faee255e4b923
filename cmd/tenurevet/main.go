// Command tenurevet finds mistakes in the ownership of tensors when a program
// is compiled: tensors used after they were given up, released twice, or never.
// It runs on its own and as a tool of go vet:
//
//	tenurevet ./...
//	go vet -vettool=$(which tenurevet) ./...
//
// It reports on standard error and exits with 1 if it found mistakes. Package
// vet documents the mistakes that it reports, and those that it does not.
package main

import (
	"golang.org/x/tools/go/analysis/singlechecker"

	"github.com/tenure-go/tenure/vet"
)

func main() { singlechecker.Main(vet.Analyzer) }
