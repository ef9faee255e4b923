package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/contest"
	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

func TestArguments(t *testing.T) {
	for want, args := range map[string][]string{
		`-threads: got "1,x"`:                  {"-models", "scatter", "-threads", "1,x", "-python", "none"},
		`-threads: got "0"`:                    {"-models", "scatter", "-threads", "0"},
		`-models: got "none"`:                  {"-models", "none"},
		"-from: got no files":                  {"-from"},
		"no such file":                         {"-from", filepath.Join(t.TempDir(), "none")},
		"python3 zoo/make.py alexnet makes it": {"-models", "alexnet", "-zoofolder", t.TempDir()},
		"got no model of the zoo":              {"-zoo", "-zoofolder", t.TempDir()},
		"python3 ort.py install":               {"-models", "scatter", "-threads", "1", "-python", filepath.Join(t.TempDir(), "none")},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", args, err, want)
		}
	}
	if contest.DefaultVenv() == "" {
		t.Error("got no folder for ONNX Runtime, want one")
	}
}

func TestWrite(t *testing.T) {
	var b strings.Builder
	if err := write(&b, []suite.Model{{Name: "mlp"}, {Name: "resnet", Folder: filepath.Join(t.TempDir(), "resnet")}}); err != nil {
		t.Fatal(err)
	}
	if want := "mlp\nresnet (missing: python3 zoo/make.py resnet)\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
