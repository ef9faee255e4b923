package command

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
)

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
	code := static.execute(ctx, []string{"run", filepath.Join(root, "digits.onnx"), "-i", filepath.Join(root, "samples", "7.png")}, &stdout, &stderr)
	if want := "tenure: run: interrupt signal received\n"; code != 1 || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("got exit code %d, %q and %q, want 1, nothing and %q", code, &stdout, &stderr, want)
	}
}
