package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
)

// TestWriteFile replaces a file whole, and leaves it and nothing else where
// the writing fails.
func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	text := func(s string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, _ = io.WriteString(w, s)
			return err
		}
	}
	if err := writeFile(path, text("old", nil)); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := writeFile(path, text("half", broken)); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("got %v, want an error that names the file and is %v", err, broken)
	}
	if got, _ := os.ReadFile(path); string(got) != "old" {
		t.Errorf("after a write that failed: got %q, want what was there", got)
	}
	if err := writeFile(path, text("new", nil)); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "new" {
		t.Errorf("got %q, want the new text", got)
	}
	if list, _ := os.ReadDir(dir); len(list) != 1 {
		t.Errorf("got %d files, want no other than the one written", len(list))
	}
}

func TestFileNames(t *testing.T) {
	var infos []tenure.Info
	for _, name := range []string{"y", "a/b", `a\b`, "A:B", "a_b_2", "Y", strings.Repeat("é", 200)} {
		infos = append(infos, tenure.Info{Name: name})
	}
	want := []string{"y", "a_b", "a_b_2", "A_B_3", "a_b_2_4", "Y_5", strings.Repeat("é", 100)}
	if got := fileNames(infos); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestInterrupted runs the command with a context that an interrupt ended.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("interrupt signal received"))
	var stdout, stderr bytes.Buffer
	root := filepath.Join("..", "..", "examples", "digits")
	code := execute(ctx, []string{"run", filepath.Join(root, "digits.onnx"), "-i", filepath.Join(root, "samples", "7.png")}, &stdout, &stderr)
	if want := "tenure: run: interrupt signal received\n"; code != 1 || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("got exit code %d, %q and %q, want 1, nothing and %q", code, &stdout, &stderr, want)
	}
}
