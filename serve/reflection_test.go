package serve

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/serve/internal/grpc"
)

// TestReflection asks by both versions of the service, as grpcurl does.
func TestReflection(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	for _, version := range []string{"v1", "v1alpha"} {
		got := invoke(t, h.URL, "/grpc.reflection."+version+".ServerReflection/ServerReflectionInfo",
			`{"list_services":"","host":"h"}`, `{"file_containing_symbol":"inference.ModelInferRequest.InferInputTensor"}`, `{"file_by_filename":"health.proto"}`,
			`{"file_containing_symbol":"no.Such"}`, `{"all_extension_numbers_of_type":"inference.ModelConfig"}`, `{"file_containing_extension":{"containing_type":"inference.ModelConfig","extension_number":9}}`, `{}`)
		wants := []string{"inference.GRPCInferenceService", "grpc_file", "grpc_file", "error_message:not found", "base_type_name:inference.ModelConfig", "error_message:not found", "got no question"}
		if got.code != 0 || len(got.messages) != len(wants) {
			t.Fatalf("got the code %d, %q and %d answers", got.code, got.text, len(got.messages))
		}
		for i, want := range wants {
			m := got.messages[i]
			if want == "grpc_file" {
				files := m["file_descriptor_response"].(map[string]any)["file_descriptor_proto"].([]any)
				if len(files) != 1 || !strings.Contains(string(files[0].([]byte)), "proto3") {
					t.Errorf("%s, answer %d: got %v, want a file", version, i, files)
				}
			} else if !strings.Contains(fmt.Sprint(m), want) {
				t.Errorf("%s, answer %d: got %v, want %q", version, i, m, want)
			}
		}
		if first := got.messages[0]; first["valid_host"] != "h" || fmt.Sprint(first["original_request"]) != "map[host:h list_services:]" {
			t.Errorf("got %v, want the question in it", first)
		}
	}
}

// TestHealth wants the health service to say what the server says of itself.
func TestHealth(t *testing.T) {
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30, Explicit: true, Empty: true, Token: "secret"})
	health := func(method, service string) called {
		t.Helper()
		return invoke(t, h.URL, "/grpc.health.v1.Health/"+method, `{"service":"`+service+`"}`)
	}
	for _, service := range []string{"", "inference.GRPCInferenceService"} {
		if got := health("Check", service); got.code != 0 || fmt.Sprint(got.messages) != "[map[status:SERVING]]" {
			t.Errorf("%s: got %+v", service, got)
		}
	}
	wantStatus(t, health("Check", "other"), grpc.NotFound, "unknown service")
	if got := health("List", ""); fmt.Sprint(got.messages) != "[map[statuses:map[:map[status:SERVING] inference.GRPCInferenceService:map[status:SERVING]]]]" {
		t.Errorf("got %+v", got)
	}
	watch := openStream(t, t.Context(), h.URL, "/grpc.health.v1.Health/Watch", frame(nil))
	other := openStream(t, t.Context(), h.URL, "/grpc.health.v1.Health/Watch", frame(encode(t, "/grpc.health.v1.Health/Watch", `{"service":"other"}`)))
	if got := other.next(); got["status"] != "SERVICE_UNKNOWN" {
		t.Errorf("got %v", got)
	}
	if got := watch.next(); got["status"] != "SERVING" {
		t.Errorf("got %v", got)
	}
	s.drain()
	if got := watch.next(); got["status"] != "NOT_SERVING" {
		t.Errorf("got %v", got)
	}
	wantStatus(t, invoke(t, h.URL, inference+"ServerReady", `{}`), grpc.OK, "")
	wantStatus(t, invoke(t, h.URL, inference+"ServerMetadata", `{}`), grpc.Unauthenticated, "want that of the server")
	wantStatus(t, invoke(t, h.URL, inference+"ModelStreamInfer", `{}`), grpc.Unauthenticated, "want that of the server")
	wantStatus(t, send(t, h.URL, inference+"ServerMetadata", strings.NewReader(string(frame(nil))), "Authorization", "Bearer secret"), grpc.OK, "")
}
