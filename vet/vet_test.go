package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/tenure-go/tenure/vet"
)

// The fixtures say what must be reported, and, by saying nothing, what must
// not.
func TestAnalyzer(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	analysistest.Run(t, analysistest.TestData(), vet.Analyzer, "bad", "good", "lib", "across")
}
