//go:build invariants

package share

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// TestKillMatrixInContainers plays scenes with each process in a container. The
// one that dies stays in the namespace of this process, where its numbers mean
// nothing to the others: process 1 of a namespace cannot kill itself.
func TestKillMatrixInContainers(t *testing.T) {
	scenes := []struct {
		victim string
		step   int
	}{{"nobody", 0}, {"owner", 5}, {"owner", 12}, {"consumer", 22}, {"consumer", 27}, {"forwarder", 42}, {"claimer", 45}}
	for _, users := range []bool{false, true} {
		for _, s := range scenes {
			t.Run(fmt.Sprintf("users %v, %s dies at %d", users, s.victim, s.step), func(t *testing.T) {
				needContainers(t, users)
				checkDescriptors(t)
				inside := 0
				start := func(t testing.TB, name, dir, role string, env ...string) *proc {
					cmd := exec.Command(os.Args[0])
					cmd.Env = append(os.Environ(), append(env, roleVar+"="+role, "TENURE_SHARE_DIR="+dir)...)
					if name != s.victim {
						contained(users, inside)(cmd)
						inside += 1000
					}
					return startProc(t, name, cmd)
				}
				for _, wrong := range (cell{victim: s.victim, step: s.step, consumers: 1, start: start}).run(t) {
					t.Error(wrong)
				}
			})
		}
	}
}
