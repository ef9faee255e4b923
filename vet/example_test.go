package vet_test

import (
	"fmt"

	"github.com/tenure-go/tenure/vet"
)

// A checker of one's own runs the analyzer beside others, as
// golang.org/x/tools/go/analysis/multichecker does:
//
//	multichecker.Main(vet.Analyzer, shadow.Analyzer)
func Example() {
	fmt.Println(vet.Analyzer.Name + ": " + vet.Analyzer.Doc)
	// Output: tenure: report tensors that are used after they were given up, released twice, or never released
}
