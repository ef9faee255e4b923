package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
)

func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`-threads: got "1,x"`:    {"-models", "scatter", "-threads", "1,x", "-python", "none"},
		`-threads: got "0"`:      {"-models", "scatter", "-threads", "0"},
		`-models: got "none"`:    {"-models", "none"},
		"-from: got no files":    {"-from"},
		"no such file":           {"-from", filepath.Join(t.TempDir(), "none")},
		"python3 ort.py install": {"-models", "scatter", "-threads", "1", "-python", filepath.Join(t.TempDir(), "none")},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", args, err, want)
		}
	}
	if contest.DefaultVenv() == "" {
		t.Error("got no folder for ONNX Runtime, want one")
	}
}
