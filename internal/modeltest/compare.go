package modeltest

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/tensor"
)

// SharedRoot returns the folder of the optional test data: $TENURE_SHARED, or
// "shared" beside the module. It need not exist.
func SharedRoot() string {
	if root := os.Getenv("TENURE_SHARED"); root != "" {
		return root
	}
	return filepath.Join(Root(), "..", "shared")
}

// SharedDir returns the folder of optional test data, or skips the test.
func SharedDir(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(SharedRoot(), name)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("skipped: the optional test data in %s are not here (TENURE_SHARED names the folder that has them as %s)", dir, name)
	}
	return dir
}

// Tolerance is how far an output may be from its reference:
// |got-want| <= atol + rtol*|want|.
type Tolerance struct{ RTol, ATol float64 }

// Differs returns where two tensors differ the most, "" when nowhere beyond
// the tolerance.
func Differs(got, want *tensor.Tensor, tol Tolerance) string {
	if got.DType() != want.DType() || got.Shape() != want.Shape() {
		return fmt.Sprintf("got %s%s, want %s%s", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	a, b := floatsOf(got), floatsOf(want)
	worst, at := 0.0, -1
	for i := range a {
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			continue
		}
		over := math.Abs(a[i]-b[i]) / (tol.ATol + tol.RTol*math.Abs(b[i]))
		if !(over <= 1) && !(over <= worst) {
			worst, at = over, i
		}
	}
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("element %d: got %v, want %v, %.3g times the tolerance", at, a[at], b[at], worst)
}

func floatsOf(x *tensor.Tensor) []float64 {
	data, err := tensor.Float64s(x)
	if err != nil {
		panic(err)
	}
	return data
}

// ReadTensor reads the TensorProto in a file. The caller owns the tensor.
func ReadTensor(t testing.TB, path string) *tensor.Tensor {
	t.Helper()
	x, _, err := onnx.ReadTensorFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
