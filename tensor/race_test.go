//go:build race

package tensor

import (
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

const raceChild = "TENURE_RACE_CHILD"

// TestRaceOnTensorBytes is two halves: in the child process it writes the same
// elements of a tensor from two goroutines at once, in opposite order: of two
// writes in the very same moment the detector may see neither.
func TestRaceOnTensorBytes(t *testing.T) {
	kind := os.Getenv(raceChild)
	if kind == "" {
		for _, kind := range []string{"small", "large", "ordered"} {
			t.Run(kind, func(t *testing.T) { runRaceChild(t, kind) })
		}
		return
	}
	n, last := 8, 8
	if kind == "large" {
		n = 1 << 20
	}
	x := ok(Of(make([]float32, n), n))(t)
	var wg, both sync.WaitGroup
	both.Add(2)
	for backwards := range 2 {
		wg.Go(func() {
			if kind == "ordered" { // the lock orders the writers, and the detector must see that too
				for {
					if v, err := Write[float32](x); err == nil {
						v.Data[n-1]++
						v.Release()
						return
					}
				}
			}
			v := ok(Read[float32](x))(t)
			both.Done()
			both.Wait() // taking and ending uses orders goroutines: the writes must lie between
			for i := range last {
				if backwards == 1 {
					i = last - 1 - i
				}
				v.Data[n-1-i]++ // wrong: a view from Read must not be written
			}
			v.Release()
		})
	}
	wg.Wait()
	release(t, x)
}

func runRaceChild(t *testing.T, kind string) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestRaceOnTensorBytes$", "-test.count=1")
	cmd.Env = append(os.Environ(), raceChild+"="+kind, "GORACE=")
	out, err := cmd.CombinedOutput()
	seen := strings.Contains(string(out), "DATA RACE")
	if kind == "ordered" {
		if err != nil || seen {
			t.Errorf("ordered writes: got %v, want the detector silent; output:\n%s", err, out)
		}
		return
	}
	if err == nil || !seen {
		t.Errorf("racing writes to a %s tensor: got %v, want the detector to see them; output:\n%s", kind, err, out)
	}
}
