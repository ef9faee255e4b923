package serve

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// TestLogSettings wants a level that a client turns off to be off, and what
// cannot be changed to be refused.
func TestLogSettings(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))
	dir := write(t, map[string][]byte{"double.onnx": doubling()})
	s, h := start(t, Config{Paths: []string{dir}, Memory: 1 << 30, Explicit: true, Log: log})
	all := `{"log_error":true,"log_file":"","log_format":"default","log_info":false,"log_verbose_level":0,"log_warning":true}`
	wantCode(t, get(t, h.URL+"/v2/logging"), 200, all)
	load := func() bool {
		t.Helper()
		out.Reset()
		wantCode(t, post(t, h.URL+"/v2/repository/models/none/load", "", nil), 404, "")
		s.config.Log.With("a", 1).WithGroup("g").Error("another")
		return strings.Contains(out.String(), "a client's load failed") && strings.Contains(out.String(), "another")
	}
	if !load() {
		t.Errorf("got the log %q, want errors", &out)
	}
	wantCode(t, post(t, h.URL+"/v2/logging", `{"log_error":false}`, nil), 200, strings.Replace(all, `"log_error":true`, `"log_error":false`, 1))
	if load() || out.Len() > 0 {
		t.Errorf("got the log %q, want none", &out)
	}
	for text, want := range map[string]string{
		`{"log_info":true,"log_warning":false}`:        "the server's log was started without this level",
		`{"log_file":"/etc/passwd"}`:                   "log_file: got /etc/passwd, want , which cannot be changed",
		`{"log_error":1}`:                              "log_error: got 1, want true or false",
		`{"log_error":true,"log_everything":true}`:     `got the setting \"log_everything\", want one of`,
		`{"log_error":true,"log_format":"ISO8601"}`:    "log_format: got ISO8601, want default",
		`{"log_verbose_level":0,"log_verbose":[1,2]}`:  "want one of",
		`{"log_verbose_level":0.5,"log_error":"true"}`: "log_error: got true, want true or false",
	} {
		if got := post(t, h.URL+"/v2/logging", text, nil); got.code < 400 || !strings.Contains(got.text, want) {
			t.Errorf("%s: got %d and %s, want %q", text, got.code, got.text, want)
		}
	}
	// None of them changed anything.
	wantCode(t, get(t, h.URL+"/v2/logging"), 200, strings.Replace(all, `"log_error":true`, `"log_error":false`, 1))
	wantCode(t, post(t, h.URL+"/v2/logging", `{"log_error":true,"log_verbose_level":0}`, nil), 200, all)
	if !load() {
		t.Errorf("got the log %q, want errors", &out)
	}
	_, other := start(t, Config{Paths: []string{dir}, Memory: 1 << 30})
	wantCode(t, post(t, other.URL+"/v2/logging", `{"log_error":false}`, nil), 400, "the server was not started with it")
	wantCode(t, post(t, other.URL+"/v2/logging", `{}`, nil), 200, `"log_error":false`)
}

// TestTraceSettings wants the settings of a server that traces nothing.
func TestTraceSettings(t *testing.T) {
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	all := `{"log_frequency":"0","trace_count":"-1","trace_file":"","trace_level":["OFF"],"trace_mode":"triton","trace_rate":"1000"}`
	for _, path := range []string{"/v2/trace/setting", "/v2/models/double/trace/setting"} {
		wantCode(t, get(t, h.URL+path), 200, all)
		wantCode(t, post(t, h.URL+path, `{"trace_level":"OFF","trace_rate":1000,"trace_file":null,"trace_count":[]}`, nil), 200, all)
		wantCode(t, post(t, h.URL+path, `{"trace_level":["OFF","TENSORS"]}`, nil), 501, "trace_level: got [OFF TENSORS], want [OFF]: requests are not traced here")
		wantCode(t, post(t, h.URL+path, `{"trace_depth":1}`, nil), 400, `got the setting \"trace_depth\"`)
	}
	wantCode(t, get(t, h.URL+"/v2/models/none/trace/setting"), 404, "unknown model")
}
