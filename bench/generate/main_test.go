package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
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
	file := filepath.Join(t.TempDir(), "generate.json")
	if err := run(append([]string{"-python", self, "-ort", "", "-turns", "1", "-results", file}, args...), &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// checkRow expects every figure of a row.
func checkRow(t *testing.T, r *results.Result, words ...string) {
	t.Helper()
	row, ok := r.Find(words...)
	if !ok {
		t.Fatalf("got no row %q, want one", words)
	}
	for _, f := range new(sides).figures(1) {
		if got := row.Figures[f.Name].Median; got <= 0 {
			t.Errorf("%q: got %s %v, want more than 0", words, f.Name, got)
		}
	}
}

func TestGPT2(t *testing.T) {
	if _, err := os.Stat(filepath.Join(suite.LightFolders()[0], "gpt2_tiny")); err != nil {
		t.Skip("the optional test data are not here: ", err)
	}
	checkRow(t, measured(t, "-models", "gpt2_tiny", "-tokens", "3"), "gpt2_tiny", "7", "1")
}

// A small decoder in the place of the one of six layers, whose weights are
// large.
func TestDecoder(t *testing.T) {
	large := decoders[1].sizes
	defer func() { decoders[1].sizes = large }()
	decoders[1].sizes = suite.Decoder{Layers: 2, Width: 64, Heads: 4, Groups: 2, Inner: 96, Vocabulary: 32, Positions: 64}
	r := measured(t, "-models", "decoder6", "-past", "4,9", "-tokens", "2")
	checkRow(t, r, "decoder6", "4", "1")
	checkRow(t, r, "decoder6", "9", "1")
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{"-models other": `got "other"`, "-threads 0": "numbers from 1 up", "-past 0": "numbers from 1 up"} {
		if err := run(strings.Fields(args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", args, err, want)
		}
	}
}
