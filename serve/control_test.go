package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestControl loads and unloads models as clients do.
func TestControl(t *testing.T) {
	dir := write(t, map[string][]byte{"a/1/model.onnx": doubling(), "b/1/model.onnx": doubling(), "b/2/model.onnx": simple(), "broken/1/model.onnx": []byte("version https://git-lfs.github.com/spec/v1")})
	s, h := start(t, Config{Paths: []string{dir}, Explicit: true, Empty: true, Memory: 1 << 30})
	control := func(what string, code int, body, part string) {
		t.Helper()
		wantCode(t, post(t, h.URL+"/v2/repository/"+what, body, nil), code, part)
	}
	control("index", 200, "", `[{"name":"a"},{"name":"b"},{"name":"broken"}]`)
	wantCode(t, get(t, h.URL+"/v2/models/a/ready"), 404, "Request for unknown model: 'a' is not found")
	control("models/a/load", 200, "{}", "")
	control("models/b/load", 200, `{"parameters":{"config":"{\"version_policy\":{\"all\":{}}}"}}`, "")
	control("index", 200, `{"ready":true}`, `[{"name":"a","version":"1","state":"READY"},{"name":"b","version":"1","state":"READY"},{"name":"b","version":"2","state":"READY"}]`)
	control("models/broken/load", 400, "", "load failed for model 'broken'")
	control("index", 200, "", `{"name":"broken","state":"UNAVAILABLE","reason":"version 1: `)
	control("models/none/load", 404, "", "load failed for model 'none'")
	control("models/a/load", 400, `{"parameters":{"file:1/model.onnx":"AAAA"}}`, "files of models are not taken from requests")
	control("models/a/load", 400, `{"parameters":{"config":"{"}}`, "config: ")
	control("models/a/load", 400, `{"parameters":`, "unexpected end")
	control("models/a/load", 400, `{"parameters":{"config":"{\"max_batch_size\":-3}"}}`, "max_batch_size: got -3")
	text, data := row(1, 1)
	wantDoubled(t, post(t, h.URL+"/v2/models/a/infer", text, data), 1, 1) // the failed load left it in use

	// A file that is overwritten in place, which is loaded anew.
	if err := os.WriteFile(filepath.Join(dir, "a/1/model.onnx"), simple(), 0o600); err != nil {
		t.Fatal(err)
	}
	wantDoubled(t, post(t, h.URL+"/v2/models/a/infer", text, data), 1, 1)
	control("models/a/load", 200, "", "")
	wantCode(t, get(t, h.URL+"/v2/models/a"), 200, "INPUT0")

	control("models/a/unload", 200, "", "")
	control("models/a/unload", 200, "", "")
	control("models/none/unload", 404, "", "unknown model")
	wantCode(t, post(t, h.URL+"/v2/models/a/infer", text, data), 404, "unknown model")
	control("index", 200, "", `{"name":"a","state":"UNAVAILABLE","reason":"unloaded"}`)
	wantCode(t, get(t, h.URL+"/healthz"), 200, "true")
	wantCode(t, get(t, h.URL+"/v2/models/stats"), 200, `"name":"b","version":"2"`)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	control("models/a/load", 503, "", ErrClosed.Error())
	wantCode(t, get(t, h.URL+"/v2/health/ready"), 503, `{"live":true,"ready":false}`)
	wantCode(t, get(t, h.URL+"/v2/health/live"), 200, `{"live":true}`)
}

// TestNoControl wants models left alone where the owner did not permit it.
func TestNoControl(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"a.onnx": doubling()})}})
	for _, what := range []string{"load", "unload"} {
		wantCode(t, post(t, h.URL+"/v2/repository/models/a/"+what, "", nil), 400, "explicit model load / unload is not allowed")
	}
}

// TestWeightsThatDoNotFit wants a model refused before its weights are read.
func TestWeightsThatDoNotFit(t *testing.T) {
	dir := write(t, map[string][]byte{"lookup.onnx": lookup()})
	if _, err := New(t.Context(), Config{Paths: []string{dir}, Memory: 100}); !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "loading the weights takes 160 B") {
		t.Errorf("got %v, want an error with the bytes", err)
	}
	if _, err := New(t.Context(), Config{Paths: []string{dir}, Memory: 4000}); err == nil || !strings.Contains(err.Error(), "warm-up: the request takes") {
		t.Errorf("got %v, want an error: there is no room for a request", err)
	}
}

// TestToken wants everything but health closed to requests without the token.
func TestToken(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"a.onnx": doubling()})}, Token: "secret", Pprof: true})
	for path, open := range map[string]bool{"/v2/health/live": true, "/v2/health/ready": true, "/healthz": true, "/v2": false, "/v2/models/a": false, "/metrics": false, "/debug/pprof/tenure": false} {
		for token, code := range map[string]int{"": 401, "Bearer wrong": 401, "Basic secret": 401, "Bearer secret": 200} {
			r, _ := http.NewRequest("GET", h.URL+path, nil)
			r.Header.Set("Authorization", token)
			if open {
				code = 200
			}
			if got := do(t, r); got.code != code {
				t.Errorf("%s with %q: got %d, want %d", path, token, got.code, code)
			}
		}
	}
}

// TestPlanPage wants the plan's figures for shapes, and errors as for requests.
func TestPlanPage(t *testing.T) {
	s, h := start(t, Config{Paths: []string{"../examples/digits"}, Threads: 1, Memory: 1 << 30})
	ask := func(body string) reply { return post(t, h.URL+"/v2/models/digits/plan", body, nil) }
	got := ask(`{"inputs":[{"name":"image","shape":[3,1,8,8]}]}`)
	var v struct {
		Arena  int64 `json:"arena_bytes"`
		IO     int64 `json:"io_bytes"`
		Fits   bool  `json:"fits_now"`
		Budget int64 `json:"budget_bytes"`
		More   int64 `json:"more_bytes"`
	}
	if err := json.Unmarshal([]byte(got.text), &v); err != nil || v.Arena != 9216 || v.IO != 888 || !v.Fits || v.Budget != s.memory.budget || v.More < 888 {
		t.Errorf("got %s, want an arena of 9216 bytes and 888 of inputs and outputs", got.text)
	}
	wantCode(t, ask(`{"inputs":[{"name":"image","shape":[100000000,1,8,8]}]}`), 200, `"fits_now":false`)
	wantCode(t, ask(`{"inputs":[{"name":"image","shape":[1,1,8,9]}]}`), 400, "image")
	wantCode(t, ask(`{"inputs":[{"name":"image","shape":[-1]}]}`), 400, "want sizes of zero or more")
	wantCode(t, ask(`{}`), 400, "got no shape")
	wantCode(t, ask(`[`), 400, "unexpected end")
	wantCode(t, post(t, h.URL+"/v2/models/none/plan", "{}", nil), 404, "unknown model")
}

// TestLog wants loads and failures in the log.
func TestLog(t *testing.T) {
	var b bytes.Buffer
	s, err := New(t.Context(), Config{Paths: []string{write(t, map[string][]byte{"a.onnx": doubling()})}, Log: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Unload(context.Background(), "a"); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{`msg=loaded model=a versions=[1]`, `msg=unloaded model=a`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("got the log %s, want %s", &b, want)
		}
	}
}

func ExampleNew() {
	s, err := New(context.Background(), Config{Paths: []string{"../examples/digits"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	list, err := s.Models()
	fmt.Println(list, err)
	// Output: [{digits 1 READY }] <nil>
}
