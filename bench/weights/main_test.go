package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	serveIfAsked()
	os.Exit(m.Run())
}

// Processes that share have one copy between them, the others one each.
func TestGroups(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("mappings are read from /proc")
	}
	dir := t.TempDir()
	files, err := build(dir, "mlp", "")
	if err != nil {
		t.Fatal(err)
	}
	const n = 2
	sum := func(shared bool) (bytes int64) {
		list, err := group(files[0], dir, n, shared)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			if f.Promised < 16<<20 || f.Own <= 0 || f.Peak < f.Own || (f.Shared > 0) != shared {
				t.Errorf("shared %v: got %+v, want a process's figures", shared, f)
			}
			bytes += f.weights()
		}
		return bytes
	}
	apart, shared := sum(false), sum(true)
	if apart < n*(16<<20) || shared < 16<<20 || shared > 20<<20 {
		t.Errorf("got %d bytes of weights apart and %d shared, want 16 MiB %d times, and once", apart, shared, n)
	}
	var out bytes.Buffer
	if err := run([]string{"-processes", "2", files[0]}, &out); err != nil || !strings.Contains(out.String(), "of one copy") {
		t.Errorf("got %v, %q, want a table", err, out.String())
	}
	if err := run([]string{"-processes", "0"}, &out); err == nil {
		t.Error("no processes: got no error")
	}
	if err := run([]string{filepath.Join(dir, "none.onnx")}, &out); err == nil {
		t.Error("no file: got no error")
	}
}
