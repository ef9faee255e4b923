package serve

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/python/pythontest"
)

// TestTritonClient runs the Python client of Triton, as it is installed,
// against a server.
func TestTritonClient(t *testing.T) {
	python := pythontest.Interpreter(t, "numpy", "tritonclient.http", "tritonclient.http.aio")
	files := map[string][]byte{
		"simple/1/model.onnx": simple(), "simple/2/model.onnx": simple(), "text.onnx": identity(onnxtest.String), "halves.onnx": identity(f16), "double.onnx": doubling(),
		"batched/1/model.onnx": doubling(), "batched/config.json": []byte(`{"max_batch_size":8,"dynamic_batching":{"max_queue_delay_microseconds":1000}}`),
	}
	_, h := start(t, Config{Paths: []string{write(t, files)}, Explicit: true, Name: "triton", Memory: 1 << 30})
	cmd := exec.Command(python, "testdata/triton.py", h.URL[len("http://"):])
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}
