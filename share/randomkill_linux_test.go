//go:build invariants

package share

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	kills   = flag.Int("kills", 100, "how many processes TestRandomKills kills")
	pythons = flag.Int("pythons", 0, "how many of 100 of them are in Python")
)

// TestRandomKills keeps consumers and an owner at work and kills them at any
// time: consumers throughout, now and then the owner too. Each tensor carries a
// stamp that every consumer compares, at receipt, before its release and after
// the owner's death; owners and consumers that live to their end report the
// tensors and bytes that are left.
func TestRandomKills(t *testing.T) {
	checkDescriptors(t)
	r := &ruin{t: t, random: rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))}
	r.start = r.startEither
	start, tens := time.Now(), 0
	for r.consumers+r.owners < *kills && !t.Failed() {
		r.epoch(filepath.Join(t.TempDir(), "s"))
		if now := (r.consumers + r.owners) / 10000; now > tens {
			tens = now
			t.Logf("%d killed in %s", r.consumers+r.owners, time.Since(start).Round(time.Second))
		}
	}
	t.Logf("%d consumers and %d owners killed in %s, %d tickets passed on, %d consumers and %d owners ended in order",
		r.consumers, r.owners, time.Since(start).Round(time.Second), r.tickets, r.cleanConsumers, r.cleanOwners)
}

// ruin is one owner after the other, each with consumers that come and go.
type ruin struct {
	t      testing.TB
	random *rand.Rand
	start  func(t testing.TB, name, dir, role string, env ...string) *proc

	consumers, owners           int // killed
	cleanConsumers, cleanOwners int
	mu                          sync.Mutex
	tickets                     int
	claimer                     *proc
	starting                    map[*proc]bool // those in Python take a while
}

func (r *ruin) setStarting(p *proc, is bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.starting == nil {
		r.starting = map[*proc]bool{}
	}
	r.starting[p] = is
}

func (r *ruin) isStarting(p *proc) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starting[p]
}

func (r *ruin) startEither(t testing.TB, name, dir, role string, env ...string) *proc {
	if r.random.IntN(100) < *pythons {
		p := startPythonRole(t, name, dir, role, env...)
		r.setStarting(p, true)
		return p
	}
	return startRole(t, name, dir, role, env...)
}

func (r *ruin) epoch(dir string) {
	owner := r.start(r.t, "owner", dir, "owner")
	if !owner.await("ready", nil) {
		r.report(owner.finish(false))
		return
	}
	owner.tell("run")
	go owner.await("", nil)
	var alive []*proc
	for range 4 {
		alive = append(alive, r.consumer(dir))
	}
	clear(r.starting)
	for range 40 + r.random.IntN(40) {
		time.Sleep(time.Duration(r.random.IntN(3000)) * time.Microsecond)
		i := r.random.IntN(len(alive))
		for r.isStarting(alive[i]) && r.random.IntN(10) > 0 { // most are to die at work
			time.Sleep(time.Millisecond)
			i = r.random.IntN(len(alive))
		}
		alive[i].cmd.Process.Kill()
		r.report(alive[i].finish(true))
		r.consumers++
		alive[i] = r.consumer(dir)
	}
	killed := r.random.IntN(2) == 0
	if killed {
		owner.cmd.Process.Kill()
		r.owners++
	} else {
		owner.tell("stop")
		r.cleanOwners++
	}
	r.report(owner.finish(killed))
	for _, p := range alive {
		r.report(p.finish(false))
		r.cleanConsumers++
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
	p := r.start(r.t, "consumer", dir, "consumer", fmt.Sprintf("TENURE_SHARE_FORWARD=%d", forward))
	r.mu.Lock()
	if forward == 0 {
		r.claimer = p
	}
	r.mu.Unlock()
	go p.await("", func(line string) {
		if line == "connected" {
			r.setStarting(p, false)
		}
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
