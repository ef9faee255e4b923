package exec_test

import (
	"errors"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/tensor"
)

// Sizes that are possible each, but overflow in sum, are an error before
// anything adds them up.
func TestCompileTooLarge(t *testing.T) {
	for name, text := range map[string]string{
		"inputs": `func @main(%a: f32[288230376151711743], %b: f32[288230376151711743], %c: f32[1]) -> (f32[1]) {
  %y: f32[1] = relu(%c)
  return %y
}
`,
		"values": `func @main(%a: f32[144115188075855872]) -> (f32[144115188075855872]) {
  %b: f32[144115188075855872] = exp(%a)
  %c: f32[144115188075855872] = neg(%a)
  %y: f32[144115188075855872] = sub(%b, %c)
  return %y
}
`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := exec.Compile(t.Context(), parse(t, text), ir.WeightMap{}, exec.Options{Threads: 1})
			if !errors.Is(err, tensor.ErrLimit) {
				t.Errorf("got the error %v, want %v", err, tensor.ErrLimit)
			}
		})
	}
}
