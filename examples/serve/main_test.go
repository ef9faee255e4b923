package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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

// TestClients lets clients ask at the same time, each for as many samples as it
// likes.
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

// TestAnswersWithoutJSON sends numbers at which the model overflows: the answer
// is an error, and not nothing.
func TestAnswersWithoutJSON(t *testing.T) {
	memorytest.Check(t)
	w := post(start(t), "["+strings.Repeat("3e38,-3e38,", 31)+"3e38,3e38]")
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "unsupported value: NaN") {
		t.Errorf("got code %d and %q, want 500 and the value that JSON does not have", w.Code, w.Body)
	}
}

// TestEndOfService ends the service while a request is under way.
func TestEndOfService(t *testing.T) {
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	begun, release, ended := make(chan bool), make(chan bool), make(chan error, 1)
	go func() {
		ended <- serve(ctx, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-release
			_, _ = io.WriteString(w, "an answer")
		}))
	}()
	body := make(chan string, 1)
	go func() {
		r, err := http.Get("http://" + l.Addr().String())
		if err != nil {
			body <- err.Error()
			return
		}
		defer r.Body.Close()
		data, err := io.ReadAll(r.Body)
		body <- fmt.Sprint(string(data), err)
	}()
	<-begun
	stop()
	for refused := false; !refused; { // the listener is closed when the end has begun
		c, err := net.Dial("tcp", l.Addr().String())
		if refused = err != nil; !refused {
			c.Close()
		}
	}
	select {
	case err := <-ended:
		close(release)
		t.Fatalf("got an end (%v), want one after the request is answered", err)
	case <-time.After(20 * time.Millisecond): // in which a wrong end would come
	}
	close(release)
	if got := <-body; got != "an answer<nil>" {
		t.Errorf("got %q, want the answer", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
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
