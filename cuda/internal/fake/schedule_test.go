package fake

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// cross copies a value through two streams. waits says whether the second
// waits for the first.
func cross(t *testing.T, cfg Config, waits bool) (*bench, byte) {
	b := start(t, cfg)
	p, q := b.alloc(0, 4), b.alloc(0, 4)
	b.put(0, p, []byte{1, 1, 1, 1})
	first, then := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
	e := b.event()
	b.fill(first, p, 2, 4)
	b.ok(b.EventRecord(b.ctx[0], e, first))
	if waits {
		b.ok(b.StreamWaitEvent(b.ctx[0], then, e))
	}
	b.ok(b.MemcpyDtoDAsync(b.ctx[0], q, p, 4, then))
	out := make([]byte, 4)
	b.ok(b.MemcpyDtoHAsync(b.ctx[0], address(out), q, 4, then))
	b.ok(b.CtxSynchronize(b.ctx[0]))
	return b, out[3]
}

// TestMissingWaitShows: a copy that does not wait reads the old bytes for some
// seed, and in the lazy mode.
func TestMissingWaitShows(t *testing.T) {
	old := 0
	for seed := range uint64(50) {
		b, v := cross(t, Config{Seed: seed}, true)
		b.quiet()
		if v != 2 {
			t.Fatalf("seed %d, with the wait: got %d, want 2", seed, v)
		}
		if _, v := cross(t, Config{Seed: seed, NoOrder: true}, false); v == 1 {
			old++
		}
	}
	if old < 5 {
		t.Errorf("got old bytes for %d of 50 seeds, want at least 5", old)
	}
	if _, v := cross(t, Config{Mode: Lazy, NoOrder: true}, false); v != 1 {
		t.Errorf("lazy: got %d, want the old byte", v)
	}
}

// TestMissingWaitIsReported: in every mode and in whatever order the work ran.
func TestMissingWaitIsReported(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b, _ := cross(t, cfg, true)
		b.quiet()
		b, _ = cross(t, cfg, false)
		b.reported(Unordered)
	})
}

// TestHostOrders: what the host waited for is before what it submits next.
func TestHostOrders(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		p := b.alloc(0, 8)
		s, r := b.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
		e := b.event()
		b.fill(s, p, 1, 8)
		b.ok(b.StreamSynchronize(b.ctx[0], s))
		b.fill(r, p, 2, 8)
		b.ok(b.EventRecord(b.ctx[0], e, r))
		for done := false; !done; {
			var err error
			done, err = b.EventQuery(b.ctx[0], e)
			b.ok(err)
		}
		b.fill(s, p, 3, 8)
		told := make(chan bool)
		b.ok(b.LaunchHostFunc(b.ctx[0], s, RegisterHostFunc(func(uintptr) { close(told) }), 0))
		<-told
		b.fill(r, p, 4, 8)
	})
}

// TestOrderOfDestroyedStreams: a new stream is not after the work of one that
// was destroyed.
func TestOrderOfDestroyedStreams(t *testing.T) {
	b := start(t, Config{Mode: Eager})
	p := b.alloc(0, 8)
	for range 2 {
		s := b.stream(0, driver.StreamNonBlocking)
		b.fill(s, p, 1, 8)
		b.ok(b.StreamDestroy(b.ctx[0], s))
	}
	b.reported(Unordered)
}

// TestOrderOfReads: reads need no order among themselves, a write after them
// does.
func TestOrderOfReads(t *testing.T) {
	b := start(t, Config{Mode: Lazy})
	p := b.alloc(0, 8)
	b.put(0, p, make([]byte, 8))
	var streams []driver.Stream
	for range 3 {
		s := b.stream(0, driver.StreamNonBlocking)
		b.ok(b.MemcpyDtoDAsync(b.ctx[0], b.alloc(0, 8), p, 8, s))
		streams = append(streams, s)
	}
	e := b.event()
	b.ok(b.EventRecord(b.ctx[0], e, streams[1]))
	b.ok(b.StreamWaitEvent(b.ctx[0], streams[0], e))
	b.fill(streams[0], p, 1, 4) // is after two of the reads
	for _, s := range streams[1:] {
		b.ok(b.StreamSynchronize(b.ctx[0], s))
	}
	b.quiet()
	b.ok(b.StreamSynchronize(b.ctx[0], streams[0]))
	b.reported(Unordered)
}

// TestDeterministic: a seed repeats a run.
func TestDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		var first []string
		for i := range 3 {
			var got []string
			choose := rand.New(rand.NewPCG(seed, 9))
			cfg := Config{Choose: func(n int) int {
				k := choose.IntN(n)
				got = append(got, fmt.Sprint(n, k))
				return k
			}}
			randomProgram(t, cfg, seed, -1)
			if i == 0 {
				first = got
			} else if !slices.Equal(first, got) {
				t.Fatalf("seed %d: the run did not repeat", seed)
			}
		}
	}
	a, _ := randomProgram(t, Config{Seed: 5}, 5, -1)
	c, _ := randomProgram(t, Config{Seed: 5}, 5, -1)
	if !bytes.Equal(a, c) {
		t.Error("a seed did not repeat its results")
	}
}

// program is a random program over some blocks, streams and events that waits
// wherever it has to. drop is the number of the wait that it leaves out.
type program struct {
	b       *bench
	r       *rand.Rand
	blocks  []driver.Pointer
	streams []driver.Stream
	writer  []int   // the stream of the last writer of each block
	readers [][]int // and of the readers since
	drop    int
	waits   int // so far
	out     []byte
}

const (
	programBlocks = 4
	blockBytes    = 8
)

// randomProgram runs a program of a seed and returns what it read, and the
// number of its waits.
func randomProgram(t *testing.T, cfg Config, seed uint64, drop int) ([]byte, *program) {
	cfg.Devices = 1
	p := &program{b: start(t, cfg), r: rand.New(rand.NewPCG(seed, 3)), drop: drop}
	for i := range programBlocks {
		a := p.b.alloc(0, blockBytes)
		p.b.put(0, a, bytes.Repeat([]byte{byte(i)}, blockBytes))
		p.blocks = append(p.blocks, a)
		p.writer = append(p.writer, 0)
		p.readers = append(p.readers, nil)
	}
	for range 2 + p.r.IntN(3) {
		p.streams = append(p.streams, p.b.stream(0, driver.StreamNonBlocking))
	}
	for i := range 30 {
		p.step(byte(100 + i))
	}
	p.b.ok(p.b.CtxSynchronize(p.b.ctx[0]))
	for _, a := range p.blocks {
		p.out = append(p.out, p.b.get(0, a, blockBytes)...)
	}
	return p.out, p
}

func (p *program) step(v byte) {
	s := p.r.IntN(len(p.streams))
	to, from := p.r.IntN(programBlocks), p.r.IntN(programBlocks)
	switch p.r.IntN(6) {
	case 0, 1:
		p.write(s, to)
		p.b.fill(p.streams[s], p.blocks[to], v, blockBytes)
	case 2, 3, 4:
		if to == from {
			return
		}
		p.read(s, from)
		p.write(s, to)
		p.b.ok(p.b.MemcpyDtoDAsync(p.b.ctx[0], p.blocks[to], p.blocks[from], blockBytes, p.streams[s]))
	case 5:
		p.read(s, from)
		out := make([]byte, blockBytes)
		p.b.ok(p.b.MemcpyDtoHAsync(p.b.ctx[0], address(out), p.blocks[from], blockBytes, p.streams[s]))
		p.out = append(p.out, out...)
	}
}

// read makes stream s wait for the writer of a block.
func (p *program) read(s, block int) {
	p.wait(s, p.writer[block])
	p.readers[block] = append(p.readers[block], s)
}

// write makes stream s wait for the writer and the readers of a block.
func (p *program) write(s, block int) {
	for _, r := range p.readers[block] {
		p.wait(s, r)
	}
	p.wait(s, p.writer[block])
	p.writer[block], p.readers[block] = s, nil
}

func (p *program) wait(s, other int) {
	if s == other {
		return
	}
	p.waits++
	if p.waits-1 == p.drop {
		return
	}
	e := p.b.event()
	p.b.ok(p.b.EventRecord(p.b.ctx[0], e, p.streams[other]))
	p.b.ok(p.b.StreamWaitEvent(p.b.ctx[0], p.streams[s], e))
	p.b.ok(p.b.EventDestroy(p.b.ctx[0], e))
}

// programs is how many programs a test draws.
func programs(n uint64) uint64 {
	if testing.Short() {
		return n / 2
	}
	return n
}

// TestModesAgree: a program that waits wherever it has to gives the same bytes
// in every mode, and no reports.
func TestModesAgree(t *testing.T) {
	for seed := range programs(100) {
		wanted, p := randomProgram(t, Config{Mode: Eager}, seed, -1)
		p.b.quiet()
		for _, cfg := range []Config{{Mode: Lazy}, {Seed: seed}, {Seed: ^seed}} {
			got, p := randomProgram(t, cfg, seed, -1)
			p.b.quiet()
			if !bytes.Equal(got, wanted) {
				t.Fatalf("program %d, %+v: got other bytes than in the eager mode", seed, cfg)
			}
		}
		if t.Failed() {
			t.Fatalf("program %d", seed)
		}
	}
}

// TestEveryWaitCounts takes away each wait of some programs. Where another wait
// does not stand in for it, this is reported; and where the bytes that are read
// differ for any seed of the scheduler, it was reported.
func TestEveryWaitCounts(t *testing.T) {
	missing, wrong := 0, 0
	for seed := range programs(4) {
		wanted, whole := randomProgram(t, Config{Mode: Eager}, seed, -1)
		for drop := range whole.waits {
			_, p := randomProgram(t, Config{Mode: Eager}, seed, drop)
			reported := len(p.b.TakeReports()) > 0
			shows := differs(t, seed, drop, wanted)
			if shows && !reported {
				t.Fatalf("program %d without wait %d: wrong bytes, and no report", seed, drop)
			}
			if reported {
				missing++
			}
			if shows {
				wrong++
			}
		}
	}
	// The bytes of the others are overwritten before anybody reads them.
	if missing < 7 || wrong*10 < missing*4 {
		t.Errorf("got wrong bytes for %d of %d missing waits, want at least 4 of 10", wrong, missing)
	}
}

// differs runs a program without a wait under some seeds.
func differs(t *testing.T, seed uint64, drop int, wanted []byte) bool {
	for order := range uint64(20) {
		if got, _ := randomProgram(t, Config{Seed: order, NoOrder: true}, seed, drop); !bytes.Equal(got, wanted) {
			return true
		}
	}
	return false
}

// TestChoiceZeroIsEager: a run whose choices are all zero is one of the eager
// mode, so that shrinking ends there.
func TestChoiceZeroIsEager(t *testing.T) {
	b := start(t, Config{Choose: func(int) int { return 0 }})
	p := b.alloc(0, 4)
	s := b.stream(0, driver.StreamNonBlocking)
	b.fill(s, p, 1, 4)
	if b.peek(p) != 1 {
		t.Error("work did not run when it was submitted")
	}
}

// TestGoroutines: calls from several goroutines.
func TestGoroutines(t *testing.T) {
	everyMode(t, func(t *testing.T, cfg Config) {
		b := start(t, cfg)
		CheckReports(t, b.Machine)
		var all sync.WaitGroup
		for g := range byte(4) {
			s := b.stream(0, driver.StreamNonBlocking)
			all.Go(func() {
				for range 20 {
					p, err := b.MemAlloc(b.ctx[0], 16)
					if err != nil {
						t.Error(err)
						return
					}
					out := make([]byte, 16)
					for _, err := range []error{
						b.MemsetD8Async(b.ctx[0], p, g, 16, s),
						b.MemcpyDtoHAsync(b.ctx[0], address(out), p, 16, s),
						b.StreamSynchronize(b.ctx[0], s),
						b.MemFree(b.ctx[0], p),
					} {
						if err != nil {
							t.Error(err)
						}
					}
					if out[15] != g {
						t.Errorf("got %d, want %d", out[15], g)
					}
				}
			})
		}
		all.Wait()
	})
}
