package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// build returns the command, built.
func build(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "tenurevet.exe") // Windows wants the ending, others do not mind
	if out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return bin
}

func TestBothWaysToRunIt(t *testing.T) {
	if testing.Short() {
		t.Skip("short: compiles the packages it looks at")
	}
	bin := build(t)
	for name, args := range map[string][]string{"alone": {bin}, "under go vet": {"go", "vet", "-vettool=" + bin}} {
		run := func(patterns ...string) (string, error) {
			cmd := exec.Command(args[0], append(args[1:], patterns...)...)
			cmd.Dir = filepath.Join("..", "..")
			// The same flags otherwise, or everything is compiled again.
			cmd.Env = append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -buildvcs=false")
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if name == "under go vet" {
			if out, err := run("./examples/...", "./cmd/tenure", "./cmd/tenure-cuda", "./internal/command"); err != nil {
				t.Errorf("%s, on correct programs: %v\n%s", name, err, out)
			}
		}
		out, err := run("./cmd/tenurevet/testdata/misuse")
		if err == nil {
			t.Errorf("%s, on misuse: got success", name)
		}
		for _, text := range []string{
			"misuse.go:18:19: use of x after Donate on line 14",
			"misuse.go:10:2: x is not released on the path to the return on line 16",
			"misuse.go:14:2: y is not released on the path to the return on line 18",
		} {
			if !strings.Contains(out, text) {
				t.Errorf("%s: got %q, want %q in it", name, out, text)
			}
		}
	}
}
