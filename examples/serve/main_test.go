package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

func start(t *testing.T) *service {
	t.Helper()
	s, err := newService("../digits/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil { // the arena's Close fails if an output is still out
			t.Error(err)
		}
	})
	return s
}

func post(s *service, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", "/", strings.NewReader(body)))
	return w
}

// TestClients lets clients ask at the same time, each for as many samples as it likes.
func TestClients(t *testing.T) {
	memorytest.Check(t)
	s := start(t)
	var wg sync.WaitGroup
	for client := range 20 {
		wg.Go(func() {
			samples := client%3 + 1
			body := "[" + strings.Repeat("0,", 64*samples-1) + "1]"
			w := post(s, body)
			var answer map[string][]float32
			if err := json.Unmarshal(w.Body.Bytes(), &answer); w.Code != http.StatusOK || err != nil {
				t.Errorf("got code %d and %s, want an answer", w.Code, w.Body)
				return
			}
			if got := len(answer["probabilities"]); got != 10*samples {
				t.Errorf("got %d probabilities, want 10 for each of %d samples", got, samples)
			}
		})
	}
	wg.Wait()
}

func TestMistakesOfClients(t *testing.T) {
	memorytest.Check(t)
	s := start(t)
	for body, want := range map[string]string{
		"{}":          "cannot unmarshal object",
		"[1,2,3]":     "got 3 elements for shape [1,1,8,8], want 64",
		"[1," + "2":   "unexpected EOF",
		"[1,\"two\"]": "cannot unmarshal string",
	} {
		if w := post(s, body); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: got code %d and %q, want 400 and %q", body, w.Code, w.Body, want)
		}
	}
}

func TestClientsThatGo(t *testing.T) {
	memorytest.Check(t)
	s := start(t)
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.run(gone, make([]float32, 64)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestOtherModels(t *testing.T) {
	memorytest.Check(t)
	if _, err := newService("../../testdata/state.onnx"); err == nil || !strings.Contains(err.Error(), "want one of f32") {
		t.Errorf("got %v, want an error: the model has two inputs", err)
	}
	if _, err := newService("none.onnx"); err == nil {
		t.Error("got a service without a model")
	}
}
