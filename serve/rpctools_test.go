package serve

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// tool returns a program in the folder of $TENURE_RPC_TOOLS, or in the path, or
// skips the test.
func tool(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(os.Getenv("TENURE_RPC_TOOLS"), name)
	if os.Getenv("TENURE_RPC_TOOLS") == "" {
		path = name
	}
	path, err := exec.LookPath(path)
	if err != nil {
		t.Skipf("needs %s (TENURE_RPC_TOOLS names its folder): %v", name, err)
	}
	return path
}

// TestRPCTools asks a server by programs that know gRPC and none of its
// messages.
func TestRPCTools(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30, MaxBatch: 8})
	address := strings.TrimPrefix(h.URL, "http://")
	run := func(t *testing.T, name string, args ...string) string {
		t.Helper()
		out, err := exec.Command(tool(t, name), args...).CombinedOutput()
		if err != nil {
			return fmt.Sprintf("%v: %s", err, out)
		}
		return string(out)
	}
	want := func(t *testing.T, got, part string) {
		t.Helper()
		if !strings.Contains(got, part) {
			t.Errorf("got %s, want %q", got, part)
		}
	}
	request := `{"model_name":"double","id":"7","inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"contents":{"fp32_contents":[1,2,3,4]}}]}`
	doubled := base64.StdEncoding.EncodeToString(floatBytes([]float32{2, 4, 6, 8}))
	t.Run("grpcurl", func(t *testing.T) {
		want(t, run(t, "grpcurl", "-plaintext", address, "list"), "inference.GRPCInferenceService")
		want(t, run(t, "grpcurl", "-plaintext", address, "describe", "inference.GRPCInferenceService.ModelStreamInfer"), "stream .inference.ModelInferRequest")
		want(t, run(t, "grpcurl", "-plaintext", "-d", request, address, "inference.GRPCInferenceService/ModelInfer"), `"`+doubled+`"`)
		want(t, run(t, "grpcurl", "-plaintext", "-d", request+request, address, "inference.GRPCInferenceService/ModelStreamInfer"), `"triton_final_response"`)
		want(t, run(t, "grpcurl", "-plaintext", "-d", `{"name":"double"}`, address, "inference.GRPCInferenceService/ModelConfig"), `"max_batch_size": 8`)
		want(t, run(t, "grpcurl", "-plaintext", "-d", `{"model_name":"none"}`, address, "inference.GRPCInferenceService/ModelInfer"), "Code: NotFound")
		want(t, run(t, "grpcurl", "-plaintext", "-d", `{"service":""}`, address, "grpc.health.v1.Health/Check"), "SERVING")
	})
	t.Run("grpc-health-probe", func(t *testing.T) {
		want(t, run(t, "grpc-health-probe", "-addr="+address), "status: SERVING")
		want(t, run(t, "grpc-health-probe", "-addr="+address, "-service=other"), "NotFound")
	})
	t.Run("ghz", func(t *testing.T) {
		out := run(t, "ghz", "--insecure", "-n", "2000", "-c", "16", "--call", "inference.GRPCInferenceService.ModelInfer", "-d", request, address)
		want(t, out, "[OK]   2000 responses")
		list, err := s.loaded("double", "")
		if err != nil {
			t.Fatal(err)
		}
		defer list[0].done()
		if got := list[0].statistics().Stats["success"].count; got < 2000 {
			t.Errorf("got %d requests in the statistics, want those of ghz", got)
		}
	})
}
