package main

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestTextsTogether writes texts of several lengths in common runs: each is the
// text that is written alone.
func TestTextsTogether(t *testing.T) {
	memorytest.Check(t)
	m, err := loadWith("", tenure.WithStatePool())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := newSeveral(m, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	prompts := []string{"A tensor is", "The plan of a model says", "No"}
	for _, p := range prompts {
		list, _ := promptOf(t, p)
		if err := s.begin(context.Background(), list, 2, greedy().Draw); err != nil {
			t.Fatal(err)
		}
	}
	for range 39 {
		if err := s.advance(context.Background(), greedy().Draw); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range prompts {
		list, w := promptOf(t, p)
		want := collect(t, open(t, "", 128), list, 40, greedy())
		for _, x := range s.texts[2*i:][:2] {
			if got := x.tokens[len(list):]; !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", p, w.text(got...), w.text(want...))
			}
		}
	}
	stats, err := s.pool.Stats()
	if err != nil || stats.Shared != 1 { // of the 24 tokens of a prompt
		t.Errorf("got %+v, %v, want one block that two texts share", stats, err)
	}
}

// TestTextsOnCommandLine runs the command with several prompts.
func TestTextsOnCommandLine(t *testing.T) {
	memorytest.Check(t)
	var out, about bytes.Buffer
	if err := run([]string{"-n", "8", "-texts", "3", "A tensor", "The plan of a model"}, &out, &about); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "A tensor"); n < 3 || !strings.Contains(about.String(), "6 texts of 8 tokens") || !strings.Contains(about.String(), "1 shared") {
		t.Errorf("got %q and %q, want three texts of each prompt, and a block that is shared", out.String(), about.String())
	}
	if err := run([]string{"-texts", "0"}, &out, &about); err == nil {
		t.Error("no texts: got no error, want one")
	}
}

// TestTextsOfOtherDecoder writes texts of a decoder whose attention is spelled
// out, with a mask of one length: each is the text that is written alone.
func TestTextsOfOtherDecoder(t *testing.T) {
	file := filepath.Join(cmp.Or(os.Getenv("TENURE_SHARED"), filepath.Join("..", "..", "..", "shared")), "models", "gpt2_tiny", "model.onnx")
	if _, err := os.Stat(file); err != nil {
		t.Skip("the optional test data are not here: ", err)
	}
	memorytest.Check(t)
	m, err := loadWith(file, tenure.WithStatePool())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := newSeveral(m, 20)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	prompts := [][]int64{{5, 6, 7}, {8, 9, 10, 11, 12}, {13, 14, 15}}
	for _, list := range prompts {
		if err := s.begin(context.Background(), list, 2, greedy().Draw); err != nil {
			t.Fatal(err)
		}
	}
	for range 19 {
		if err := s.advance(context.Background(), greedy().Draw); err != nil {
			t.Fatal(err)
		}
	}
	for i, list := range prompts {
		want := collect(t, open(t, file, 60), list, 20, greedy())
		for _, x := range s.texts[2*i:][:2] {
			if got := x.tokens[len(list):]; !slices.Equal(got, want) {
				t.Errorf("%v: got %v, want %v", list, got, want)
			}
		}
	}
}
