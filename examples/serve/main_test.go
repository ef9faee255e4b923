package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/serve"
)

// TestRequest asks the server of the example as its comment does.
func TestRequest(t *testing.T) {
	memorytest.Check(t)
	s, err := serve.New(t.Context(), config([]string{"../digits/digits.onnx"}))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	body := `{"inputs":[{"name":"image","datatype":"FP32","shape":[1,1,8,8],"data":[` + strings.TrimSuffix(strings.Repeat("1,", 64), ",") + `]}]}`
	s.ServeHTTP(w, httptest.NewRequest("POST", "/v2/models/digits/infer", strings.NewReader(body)))
	text, err := io.ReadAll(w.Body)
	if w.Code != http.StatusOK || err != nil || !strings.Contains(string(text), `"shape":[1,10]`) {
		t.Errorf("got %d and %s, want an answer", w.Code, text)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestWithoutModels(t *testing.T) {
	if _, err := serve.New(t.Context(), config(nil)); err == nil {
		t.Error("got a server without a model")
	}
}
