package memory

import (
	"bytes"
	"compress/gzip"
	"flag"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

//go:noinline
func profiledAllocation(t *testing.T) *Buffer { return mustAlloc(t, 3_000_000, Scratch) }

var pprof = flag.Bool("pprof", false, "read profiles by go tool pprof, which the go command compiles for it")

// The profile has the allocations, and is read by the tool that it is for.
func TestProfile(t *testing.T) {
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
	whole := out.Bytes()
	if z, err := gzip.NewReader(bytes.NewReader(whole)); err == nil {
		if whole, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"memory.profiledAllocation", "memory.TestProfile", "allocated while profiling was off", "scratch"} {
		if !bytes.Contains(whole, []byte(want)) {
			t.Errorf("got a profile without %q", want)
		}
	}
	if !*pprof {
		t.Skip("its sums are read by go tool pprof: go test ./memory -run TestProfile -pprof, as .ci/run does")
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
