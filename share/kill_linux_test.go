//go:build invariants

package share

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func (p *proc) tell(format string, args ...any) { fmt.Fprintf(p.in, format+"\n", args...) }

// finish waits for the end and returns the faults: of the end, and of lines
// that no process may print.
func (p *proc) finish(killed bool) (wrong []string) {
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		p.cmd.Process.Signal(syscall.SIGQUIT)
		<-p.ended
		return []string{fmt.Sprintf("%s did not end:\n%s", p.name, strings.Join(p.said, "\n"))}
	}
	status := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	for _, line := range p.said {
		if strings.HasPrefix(line, "violation") || strings.HasPrefix(line, "leak") || strings.HasPrefix(line, "failed") {
			wrong = append(wrong, p.name+" says "+line)
		}
	}
	switch gotKilled := status.Signaled() && status.Signal() == syscall.SIGKILL; {
	case gotKilled != killed:
		wrong = append(wrong, fmt.Sprintf("%s: killed is %v, want %v:\n%s", p.name, gotKilled, killed, strings.Join(p.said, "\n")))
	case !killed && (len(p.said) == 0 || p.said[len(p.said)-1] != "clean"):
		wrong = append(wrong, fmt.Sprintf("%s ended with %v and without a word:\n%s", p.name, p.err, strings.Join(p.said, "\n")))
	}
	return wrong
}

// cell is one scene of the matrix: an owner, consumers, the first of which
// forwards to the last, and the process that dies.
type cell struct {
	victim    string // "owner", "consumer", "forwarder", "claimer"
	step      int
	consumers int
	start     func(t testing.TB, name, dir, role string, env ...string) *proc
	env       []string // of all
}

// run plays the scene and returns its faults.
func (c cell) run(t *testing.T) (wrong []string) {
	dir := filepath.Join(t.TempDir(), "s")
	env := func(who string) []string {
		if who == c.victim {
			return append(c.env, fmt.Sprintf("TENURE_CRASH_AT=%d", c.step))
		}
		return c.env
	}
	owner := c.start(t, "owner", dir, "owner", env("owner")...)
	owner.await("ready", nil)
	var all []*proc
	for i := range c.consumers + 2 {
		who, more := fmt.Sprintf("bystander %d", i), []string(nil)
		switch i {
		case 0:
			who, more = "forwarder", []string{"TENURE_SHARE_FORWARD=1"}
		case c.consumers + 1:
			who = "claimer"
		case 1:
			who = "consumer"
		}
		all = append(all, c.start(t, who, dir, "consumer", append(more, env(who)...)...))
	}
	connected := 0
	for _, p := range all {
		if p.await("connected", nil) {
			connected++
		}
	}
	claimer := all[len(all)-1]
	for _, p := range all {
		go p.await("", func(line string) {
			if ticket, isTicket := strings.CutPrefix(line, "ticket "); isTicket {
				claimer.tell("%s", ticket)
			}
		})
	}
	owner.tell("go %d", connected)
	owner.await("rounds done", nil)
	owner.tell("stop")
	wrong = owner.finish(c.victim == "owner")
	for _, p := range all {
		wrong = append(wrong, p.finish(p.name == c.victim)...)
	}
	checkNothingLeft(t, dir)
	return wrong
}

// scenes list the process that dies and the step at which it does.
var scenes = []struct {
	victim      string
	first, last int
}{{"owner", 1, 14}, {"consumer", 21, 31}, {"forwarder", 41, 43}, {"claimer", 44, 45}}

func TestKillMatrix(t *testing.T) {
	checkDescriptors(t)
	for _, consumers := range []int{1, 3} {
		for _, s := range scenes {
			for step := s.first; step <= s.last; step++ {
				t.Run(fmt.Sprintf("%s dies at %d with %d consumers", s.victim, step, consumers), func(t *testing.T) {
					for _, wrong := range (cell{victim: s.victim, step: step, consumers: consumers, start: startRole}).run(t) {
						t.Error(wrong)
					}
				})
			}
		}
	}
}

// TestKillMatrixNotices breaks the protocol in the two ways that matter and
// wants the scenes to notice, one of a few: whether bytes that are used too
// early are looked at in that moment is chance. There are no tickets, of which
// the first to be claimed would end an owner that has forgotten its leases.
func TestKillMatrixNotices(t *testing.T) {
	for mutation, want := range map[string]string{"early reuse": "violation", "no reclaim": "leak"} {
		var wrong []string
		for tries := 0; tries < 10 && !strings.Contains(strings.Join(wrong, "\n"), "says "+want); tries++ {
			wrong = cell{victim: "consumer", step: 27, consumers: 1, start: startRole, env: []string{"TENURE_MUTATION=" + mutation, "TENURE_SHARE_FORWARD=0"}}.run(t)
		}
		if !strings.Contains(strings.Join(wrong, "\n"), "says "+want) {
			t.Errorf("%s: no %s was noticed, only %q", mutation, want, wrong)
		}
	}
}
