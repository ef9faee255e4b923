package acceptance

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
)

// TestUpToFromOutside compares the promise with the resident memory of a
// process that runs many sizes, as the system counts it. The rest of the
// process is the memory of the Go runtime, which it reports, and freed memory
// that is kept for the next allocation.
func TestUpToFromOutside(t *testing.T) {
	const child = "TENURE_UPTO_CASE"
	if name := os.Getenv(child); name != "" {
		upToChild(t, name)
		return
	}
	if invariant.Enabled || testing.Short() {
		t.Skip("builds that check invariants or races take more memory")
	}
	for _, c := range upToCases() {
		t.Run(c.name, func(t *testing.T) {
			c.model(t) // skips where it is not there
			cmd := exec.Command(os.Args[0], "-test.run=^TestUpToFromOutside$", fmt.Sprintf("-everysize=%v", *everySize))
			cmd.Env = append(os.Environ(), child+"="+c.name)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var promised, run, rest int64
			lines := bufio.NewScanner(out)
			for lines.Scan() {
				if n, _ := fmt.Sscanf(lines.Text(), "promised %d, %d in a run, rest %d", &promised, &run, &rest); n == 3 {
					break
				}
			}
			peak, file := resident(t, cmd.Process.Pid, "VmHWM"), resident(t, cmd.Process.Pid, "RssFile")
			in.Close()
			for lines.Scan() {
			}
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			const slack = 2 << 20 // page tables, records of handles, page ends
			if took := peak - file; promised == 0 || took > promised+rest+slack || took < run/2 {
				t.Errorf("got %d bytes resident at the peak, %d of them of files, want at most %d more: promised %d, of which %d in a run, and %d of the runtime",
					peak, file, promised+rest+slack, promised, run, rest)
			} else {
				t.Logf("%d bytes resident at the peak, %d of them of files; promised %d, and %d of the runtime", peak, file, promised, rest)
			}
		})
	}
}

// upToChild runs a case and waits until its memory was looked at.
func upToChild(t *testing.T, name string) {
	for _, c := range upToCases() {
		if c.name != name {
			continue
		}
		m := c.model(t)
		before := memory.Stats()
		s, err := m.NewSession(c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		r := s.Promise()
		rest := int64(0)
		for _, n := range c.choose(r, false) {
			measure(t, s, c, n, before)
			var f runtime.MemStats
			runtime.ReadMemStats(&f)
			rest = max(rest, int64(f.Sys-f.HeapReleased)+memory.Stats().Cached)
		}
		fmt.Printf("promised %d, %d in a run, rest %d\n", r.Total(), r.PerRun(), rest)
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		return
	}
	t.Fatalf("no case %q", name)
}

// resident reads a figure of a process in bytes.
func resident(t *testing.T, pid int, figure string) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, figure+": %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatalf("no %s in the status of a process", figure)
	return 0
}
