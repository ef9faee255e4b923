package serve

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/python/pythontest"
)

// askByPython runs a script of testdata, which asks a server that has models
// for everything that the clients of Triton can ask for.
func askByPython(t *testing.T, script string, modules ...string) {
	t.Helper()
	python := pythontest.Interpreter(t, append(modules, "numpy")...)
	files := map[string][]byte{
		"simple/1/model.onnx": simple(), "simple/2/model.onnx": simple(), "text.onnx": identity(onnxtest.String), "halves.onnx": identity(f16), "double.onnx": doubling(),
		"batched/1/model.onnx": doubling(), "batched/config.json": []byte(`{"max_batch_size":8,"dynamic_batching":{"max_queue_delay_microseconds":1000},"parameters":{"note":{"string_value":"x"}}}`),
	}
	_, h := start(t, Config{Paths: []string{write(t, files)}, Explicit: true, Name: "triton", Memory: 1 << 30, SharedMemory: true, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	cmd := exec.Command(python, "testdata/"+script, h.URL[len("http://"):])
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}

// TestTritonClient runs the Python client of Triton, as it is installed,
// against a server.
func TestTritonClient(t *testing.T) {
	askByPython(t, "triton.py", "tritonclient.http", "tritonclient.http.aio")
}

// TestTritonClientRPC does the same with its client for gRPC.
func TestTritonClientRPC(t *testing.T) {
	askByPython(t, "triton_grpc.py", "tritonclient.grpc")
}

// TestTritonRegions passes tensors in shared memory.
func TestTritonRegions(t *testing.T) {
	askByPython(t, "regions.py", "tritonclient.http", "tritonclient.grpc", "tritonclient.utils.shared_memory")
}

// TestKServeClient asks by the clients of KServe.
func TestKServeClient(t *testing.T) {
	askByPython(t, "kserve_client.py", "kserve")
}

// TestDescriptors compares what reflection says with the messages of Triton's
// client, and with what protoc makes of the .proto files where Python has it.
func TestDescriptors(t *testing.T) {
	python := pythontest.Interpreter(t, "tritonclient.grpc")
	dir := t.TempDir()
	var args []string
	for i, text := range []string{inferenceProto, healthProto, reflectionProto} {
		proto, descriptor := filepath.Join(dir, fmt.Sprint(i, ".proto")), filepath.Join(dir, fmt.Sprint(i))
		for path, data := range map[string][]byte{proto: []byte(text), descriptor: offered().files[i].Descriptor()} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, proto, descriptor)
	}
	cmd := exec.Command(python, append([]string{"testdata/descriptors.py"}, args...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
