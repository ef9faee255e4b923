package memory

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

//go:noinline
func profiledAllocation(t *testing.T) *Buffer { return mustAlloc(t, 3_000_000, Scratch) }

// The profile is read by the tool that it is for.
func TestProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("short: starts go tool pprof")
	}
	old := SetProfiling(true)
	defer SetProfiling(old)
	a, b := profiledAllocation(t), profiledAllocation(t)
	SetProfiling(false)
	c := mustAlloc(t, 1_000_000, IO)
	var out bytes.Buffer
	if err := WriteProfile(&out); err != nil {
		t.Fatal(err)
	}
	for _, b := range []*Buffer{a, b, c} {
		wantErr(t, "release", b.Release(), nil)
	}
	file := filepath.Join(t.TempDir(), "tenure.pb")
	if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := exec.Command("go", "tool", "pprof", "-top", "-unit=B", "-cum", file).CombinedOutput()
	if err != nil {
		t.Fatalf("go tool pprof: %v\n%s", err, text)
	}
	for _, want := range []string{
		`6000000B .* github.com/tenure-go/tenure/memory.profiledAllocation`,
		`6000000B .* github.com/tenure-go/tenure/memory.TestProfile`,
		`\d{7}B .* allocated while profiling was off`,
	} {
		if !regexp.MustCompile(want).Match(text) {
			t.Errorf("got %s, want a line %q", text, want)
		}
	}
	text, err = exec.Command("go", "tool", "pprof", "-tags", "-sample_index=buffers", file).CombinedOutput()
	if err != nil || !regexp.MustCompile(`[2-9] .*: scratch`).Match(text) {
		t.Errorf("tags: got %s and %v, want two buffers of purpose scratch", text, err)
	}
}
