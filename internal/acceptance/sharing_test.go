package acceptance_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/tenure-go/tenure"
)

// Where weights cannot be shared, loading any model returns an error that says
// so.
func TestSharedWeightsAreRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TENURE_SHARE_DIR", dir)
	data := packedModel("c")
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, load := range map[string]func() (*tenure.Model, error){
		"file":  func() (*tenure.Model, error) { return tenure.Load(path, tenure.WithSharedWeights()) },
		"bytes": func() (*tenure.Model, error) { return tenure.LoadBytes(data, tenure.WithSharedWeights()) },
		"system": func() (*tenure.Model, error) {
			return tenure.LoadFS(os.DirFS(filepath.Dir(path)), "m.onnx", tenure.WithSharedWeights())
		},
	} {
		m, err := load()
		if err == nil {
			m.Close()
			t.Errorf("%s: got no error, want one about the folder that others may enter", name)
		}
		if unsupported := runtime.GOOS != "linux"; errors.Is(err, tenure.ErrUnsupported) != unsupported || errors.Is(err, errors.ErrUnsupported) != unsupported {
			t.Errorf("%s: got %v, want ErrUnsupported %v", name, err, unsupported)
		}
	}
}
