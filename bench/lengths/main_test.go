package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/bench/internal/suite"
)

// The test binary plays both engines.
func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

// measured runs the command with Tenure on both sides and returns its result.
func measured(t *testing.T, args ...string) *results.Result {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "lengths.json")
	if err := run(append([]string{"-python", self, "-ort", "", "-turns", "1", "-runs", "1", "-results", file}, args...), &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "case") {
		t.Errorf("got output %q, want a table", &out)
	}
	return r
}

func figure(t *testing.T, r *results.Result, name string, words ...string) float64 {
	t.Helper()
	row, ok := r.Find(words...)
	f, measured := row.Figures[name]
	if !ok || !measured {
		t.Fatalf("got no %s of %q, want one", name, words)
	}
	return f.Median
}

func TestRun(t *testing.T) {
	r := measured(t, "-models", "encoder; deep encoder", "-threads", "2")
	const threads = "2"
	for _, name := range []string{"encoder", "deep encoder"} {
		if got := figure(t, r, "lengths", name, threads); got != 10 {
			t.Errorf("%s: got %v lengths, want 10", name, got)
		}
		if structures, instances := figure(t, r, "structures", name, threads), figure(t, r, "instances", name, threads); structures != 1 || instances != 10 {
			t.Errorf("%s: got %v structures and %v instances, want 1 and one per length", name, structures, instances)
		}
	}
	for _, name := range []string{"Tenure first ms", "Tenure seen ms", "Tenure first / seen", "of the aim", "ONNX Runtime first ms", "ONNX Runtime seen ms", "first, ratio", "of"} {
		if figure(t, r, name, "encoder", threads) <= 0 {
			t.Errorf("encoder: got %s 0, want more", name)
		}
	}
	if got := figure(t, r, "difference", "encoder", threads); got != 0 {
		t.Errorf("encoder: got difference %v of the same engine, want 0", got)
	}
	if steps := figure(t, r, "steps", "deep encoder", threads); steps < 200 || steps > 400 {
		t.Errorf("deep encoder: got %v steps, want about 300", steps)
	}
}

func TestGrowing(t *testing.T) {
	if _, err := os.Stat(filepath.Join(suite.LightFolders()[0], "gpt2_tiny")); err != nil {
		t.Skip("the optional test data are not here: ", err)
	}
	r := measured(t, "-models", growingName, "-tokens", "5")
	for _, name := range []string{"Tenure first ms", "Tenure seen ms", "ONNX Runtime first ms", "ONNX Runtime seen ms", "first, ratio", "seen, ratio"} {
		if figure(t, r, name, growingName, "1") <= 0 {
			t.Errorf("got %s 0, want more", name)
		}
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{"-models other": `got "other"`, "-threads 0": "numbers from 1 up"} {
		if err := run(strings.Fields(args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}

// Every model has ten lengths, and the length between them is another one.
func TestSweeps(t *testing.T) {
	for _, s := range append(slices.Clone(sweeps), deep) {
		seen := map[length]bool{s.base: true}
		for _, n := range s.lengths {
			seen[n] = true
			for _, in := range s.inputs(n) {
				size := 1
				for _, d := range in.Dims {
					size *= d
				}
				if size > elements {
					t.Errorf("%s at %v: input %s has %d elements, want at most the %d of the file", s.name, n, in.Name, size, elements)
				}
			}
		}
		if len(seen) != 11 {
			t.Errorf("%s: got %d lengths, want 10 and another one", s.name, len(seen)-1)
		}
	}
}
