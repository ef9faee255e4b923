package cuda_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
)

var deviceKills = flag.Int("devicekills", 40, "how many processes TestRandomKillsOnDevice kills")

// cell is one scene of the matrix: an owner, consumers, the first of which
// forwards to the last, and the process that dies.
type cell struct {
	victim string // "owner", "consumer", "forwarder", "claimer"
	step   int
	env    []string // of all
}

// run plays the scene and returns its faults.
func (c cell) run(t *testing.T) (wrong []string) {
	dir := filepath.Join(t.TempDir(), "s")
	env := func(who string, more ...string) []string {
		if who == c.victim {
			more = append(more, fmt.Sprintf("TENURE_CRASH_AT=%d", c.step))
		}
		return append(more, c.env...)
	}
	owner := startRole(t, "owner", dir, "owner", env("owner")...)
	owner.await("ready", nil)
	all := []*proc{
		startRole(t, "forwarder", dir, "consumer", env("forwarder", "TENURE_CUDA_FORWARD=1")...),
		startRole(t, "consumer", dir, "consumer", env("consumer")...),
		startRole(t, "claimer", dir, "consumer", env("claimer")...),
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

// scenes list the process that dies and the steps of docs/share.md at which it
// does. A dead owner's arena is not retired, so consumers do not die there.
var scenes = []struct {
	victim      string
	first, last int
}{{"owner", 1, 15}, {"consumer", 21, 33}, {"forwarder", 41, 43}, {"claimer", 44, 45}}

func TestKillMatrixOnDevice(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("only builds with the tag invariants have the steps at which processes die")
	}
	for _, s := range scenes {
		for step := s.first; step <= s.last; step++ {
			if step == 14 { // of package share's own test
				continue
			}
			t.Run(fmt.Sprintf("%s dies at %d", s.victim, step), func(t *testing.T) {
				for _, wrong := range (cell{victim: s.victim, step: step}).run(t) {
					t.Error(wrong)
				}
			})
			if step == 1 || step == 3 { // of the owner's arenas
				continue
			}
			t.Run(fmt.Sprintf("%s dies at %d, in place", s.victim, step), func(t *testing.T) {
				for _, wrong := range (cell{victim: s.victim, step: step, env: []string{"TENURE_CUDA_FOREIGN=100"}}).run(t) {
					t.Error(wrong)
				}
			})
		}
	}
}

// TestKillMatrixOnDeviceNotices breaks the protocol in the ways that matter and
// wants the scenes to notice, one of a few.
func TestKillMatrixOnDeviceNotices(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("only builds with the tag invariants can break the protocol")
	}
	for _, c := range []struct {
		mutation, want string
		foreign        int
	}{{"early reuse", "violation", 0}, {"no reclaim", "leak", 0}, {"no event", "violation", 0}, {"early reuse", "violation", 100}, {"early end", "violation", 100}} {
		var wrong []string
		for tries := 0; tries < 10 && !strings.Contains(strings.Join(wrong, "\n"), "says "+c.want); tries++ {
			env := []string{"TENURE_MUTATION=" + c.mutation, "TENURE_CUDA_FORWARD=0", "TENURE_CUDA_ROUNDS=20", fmt.Sprintf("TENURE_CUDA_FOREIGN=%d", c.foreign)}
			wrong = cell{victim: "consumer", step: 27, env: env}.run(t)
		}
		t.Logf("%s, %d%% foreign: %.300q", c.mutation, c.foreign, wrong)
		if !strings.Contains(strings.Join(wrong, "\n"), "says "+c.want) {
			t.Errorf("%s, with %d%% of the tensors in other allocators' memory: no %s was noticed, only %q", c.mutation, c.foreign, c.want, wrong)
		}
	}
}

// TestRandomKillsOnDevice keeps consumers and an owner at work and kills them
// at any time, half of the owners with a driver that shares no events.
func TestRandomKillsOnDevice(t *testing.T) {
	r := &ruin{t: t, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))}
	start := time.Now()
	for r.consumers+r.owners < *deviceKills && !t.Failed() {
		r.epoch(filepath.Join(t.TempDir(), "s"))
	}
	t.Logf("%d consumers and %d owners killed in %s, %d tickets passed on", r.consumers, r.owners, time.Since(start).Round(time.Second), r.tickets)
}

// ruin is one owner after the other, each with consumers that come and go.
type ruin struct {
	t                 testing.TB
	random            *rand.Rand
	consumers, owners int // killed
	env               []string

	mu      sync.Mutex
	tickets int
	claimer *proc
}

func (r *ruin) epoch(dir string) {
	r.env = []string{fmt.Sprintf("TENURE_CUDA_NOIPC=%d", r.random.IntN(2)), fmt.Sprintf("TENURE_CUDA_MODE=%d", r.random.IntN(2))}
	owner := startRole(r.t, "owner", dir, "owner", r.env...)
	if !owner.await("ready", nil) {
		r.report(owner.finish(false))
		return
	}
	owner.tell("run")
	go owner.await("", nil)
	var alive []*proc
	for range 3 {
		alive = append(alive, r.consumer(dir))
	}
	for range 8 + r.random.IntN(8) {
		time.Sleep(time.Duration(r.random.IntN(60000)) * time.Microsecond)
		i := r.random.IntN(len(alive))
		_ = alive[i].cmd.Process.Kill()
		r.report(alive[i].finish(true))
		r.consumers++
		alive[i] = r.consumer(dir)
	}
	killed := r.random.IntN(2) == 0
	if killed {
		_ = owner.cmd.Process.Kill()
		r.owners++
	} else {
		owner.tell("stop")
	}
	r.report(owner.finish(killed))
	for _, p := range alive {
		r.report(p.finish(false))
	}
	checkNothingLeft(r.t, dir)
}

func (r *ruin) report(wrong []string) {
	for _, w := range wrong {
		r.t.Error(w)
	}
}

// consumer starts one. Every second asks for tickets, and the newest of the
// others gets them.
func (r *ruin) consumer(dir string) *proc {
	forward := r.random.IntN(2)
	p := startRole(r.t, "consumer", dir, "consumer", append(r.env, fmt.Sprintf("TENURE_CUDA_FORWARD=%d", forward))...)
	r.mu.Lock()
	if forward == 0 {
		r.claimer = p
	}
	r.mu.Unlock()
	go p.await("", func(line string) {
		if ticket, isTicket := strings.CutPrefix(line, "ticket "); isTicket {
			r.mu.Lock()
			r.tickets++
			to := r.claimer
			r.mu.Unlock()
			if to != nil {
				to.tell("%s", ticket)
			}
		}
	})
	return p
}
