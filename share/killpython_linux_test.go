//go:build invariants

package share

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/python/pythontest"
)

// startPythonRole is startRole in Python.
func startPythonRole(t testing.TB, name, dir, role string, env ...string) *proc {
	t.Helper()
	cmd := exec.Command(pythontest.Interpreter(t, "numpy"), filepath.Join("testdata", "roles.py"))
	cmd.Env = append(pythontest.Env(".."), append(env, roleVar+"="+role, "TENURE_SHARE_DIR="+dir, "TENURE_INVARIANTS=1")...)
	return startProc(t, name, cmd)
}

// TestKillMatrixInPython plays the scenes with the victim in Python and the
// others in Go: owners, consumers, forwarders and claimers.
func TestKillMatrixInPython(t *testing.T) {
	pythontest.Interpreter(t, "numpy")
	checkDescriptors(t)
	for _, consumers := range []int{1, 3} {
		for _, s := range scenes {
			for step := s.first; step <= s.last; step++ {
				t.Run(fmt.Sprintf("%s dies at %d with %d consumers", s.victim, step, consumers), func(t *testing.T) {
					start := func(t testing.TB, name, dir, role string, env ...string) *proc {
						if name == s.victim {
							return startPythonRole(t, name, dir, role, env...)
						}
						return startRole(t, name, dir, role, env...)
					}
					for _, wrong := range (cell{victim: s.victim, step: step, consumers: consumers, start: start}).run(t) {
						t.Error(wrong)
					}
				})
			}
		}
	}
}
