package memory

import (
	"encoding/json"
	"errors"
	"expvar"
	"math"
	"strings"
	"sync"
	"testing"
)

func mustAlloc(t *testing.T, bytes int, p Purpose) *Buffer {
	t.Helper()
	b, err := Alloc(bytes, p)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func mustRelease(t *testing.T, bs ...*Buffer) {
	t.Helper()
	for _, b := range bs {
		if err := b.Release(); err != nil {
			t.Error(err)
		}
	}
}

func TestFiguresCountWhatWasAskedFor(t *testing.T) {
	still(t)
	before := Stats()
	small := mustAlloc(t, 40, IO)
	large := mustAlloc(t, 100_000, Scratch)
	empty := mustAlloc(t, 0, Weights)
	now := Stats()
	for _, c := range []struct {
		p     Purpose
		bytes int64
	}{{IO, 40}, {Scratch, 100_000}, {Weights, 0}, {Activations, 0}} {
		if got := now.Of(c.p).Current - before.Of(c.p).Current; got != c.bytes {
			t.Errorf("%s: got %d bytes more, want %d", c.p, got, c.bytes)
		}
	}
	if got := now.Total.Current - before.Total.Current; got != 100_040 {
		t.Errorf("total: got %d bytes more, want 100040", got)
	}
	if got := now.Total.Buffers - before.Total.Buffers; got != 3 {
		t.Errorf("buffers: got %d more, want 3", got)
	}
	if now.System-before.System < 100_000 {
		t.Errorf("system: got %d bytes more, want at least 100000", now.System-before.System)
	}
	mustRelease(t, small, large, empty)
	after := Stats()
	for _, p := range Purposes() {
		if got, want := after.Of(p).Current, before.Of(p).Current; got != want {
			t.Errorf("%s after release: got %d, want %d", p, got, want)
		}
	}
	if after.Total.Current != before.Total.Current || after.Total.Buffers != before.Total.Buffers {
		t.Errorf("total after release: got %+v, want the current figures of %+v", after.Total, before.Total)
	}
}

func TestPeakIsTheHighestCurrent(t *testing.T) {
	ResetPeak()
	start := Stats().Of(Activations).Current
	a := mustAlloc(t, 1000, Activations)
	b := mustAlloc(t, 5000, Activations)
	mustRelease(t, a)
	c := mustAlloc(t, 200, Activations)
	if got := Stats().Of(Activations).Peak - start; got != 6000 {
		t.Errorf("peak: got %d, want 6000", got)
	}
	mustRelease(t, b)
	ResetPeak()
	if got := Stats().Of(Activations).Peak - start; got != 200 {
		t.Errorf("peak after reset: got %d, want 200", got)
	}
	mustRelease(t, c)
}

// Each goroutine holds its bytes while all others do too, so the peak must
// reach the sum, and can never exceed it.
func TestPeakUnderConcurrency(t *testing.T) {
	ResetPeak()
	start := Stats().Total.Current
	const n = 16
	var all, done sync.WaitGroup
	all.Add(n)
	for range n {
		done.Go(func() {
			b, err := Alloc(4096, Shared)
			if err != nil {
				t.Error(err)
			}
			all.Done()
			all.Wait()
			if err == nil {
				mustRelease(t, b)
			}
		})
	}
	done.Wait()
	if got := Stats().Total.Peak - start; got != n*4096 {
		t.Errorf("peak: got %d, want %d", got, n*4096)
	}
}

func TestLimit(t *testing.T) {
	ResetPeak()
	start := Stats().Total.Current
	old := SetLimit(start + 10_000)
	defer SetLimit(old)
	a := mustAlloc(t, 6000, IO)
	_, err := Alloc(4001, Scratch)
	if !errors.Is(err, ErrLimit) {
		t.Fatalf("over the limit: got %v, want ErrLimit", err)
	}
	for _, part := range []string{"4001 bytes", "scratch"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error text: got %q, want it to contain %q", err, part)
		}
	}
	b := mustAlloc(t, 4000, Scratch) // exactly at the limit
	if got := Stats().Total.Peak - start; got != 10_000 {
		t.Errorf("peak: got %d, want 10000: a refused allocation must not count", got)
	}
	mustRelease(t, a, b)
	if got := SetLimit(0); got != start+10_000 {
		t.Errorf("old limit: got %d, want %d", got, start+10_000)
	}
	if SetLimit(-5); Stats().Limit != 0 {
		t.Errorf("negative limit: got %d, want none", Stats().Limit)
	}
}

func TestLimitHoldsUnderConcurrency(t *testing.T) {
	ResetPeak()
	start := Stats().Total.Current
	defer SetLimit(SetLimit(start + 64*100))
	lastCollect.Store(math.MaxInt64 / 2) // no collections: they would only slow this down
	defer lastCollect.Store(0)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				b, err := Alloc(1000, Scratch)
				if err != nil {
					if !errors.Is(err, ErrLimit) {
						t.Error(err)
					}
					continue
				}
				mustRelease(t, b)
			}
		})
	}
	wg.Wait()
	f := Stats()
	if f.Total.Peak > start+64*100 {
		t.Errorf("peak: got %d over the start, want at most 6400", f.Total.Peak-start)
	}
	if f.Total.Current != start {
		t.Errorf("after all: got %d bytes, want %d", f.Total.Current, start)
	}
}

func TestAllocRefusesBadArguments(t *testing.T) {
	before := Stats()
	for _, bytes := range []int{-1, math.MinInt, math.MaxInt} {
		if _, err := Alloc(bytes, IO); err == nil {
			t.Errorf("alloc %d: got no error", bytes)
		}
	}
	if _, err := Alloc(1<<55, IO); !errors.Is(err, ErrLimit) {
		t.Errorf("alloc 2^55: got %v, want ErrLimit", err)
	}
	if _, err := Alloc(8, noPurpose); err == nil {
		t.Error("alloc without a purpose: got no error")
	}
	if after := Stats(); after.Total != before.Total || after.ByPurpose != before.ByPurpose {
		t.Errorf("figures: got %+v, want %+v", after.Total, before.Total)
	}
}

func TestVarIsAnExpvar(t *testing.T) {
	var v expvar.Var = Var{}
	b := mustAlloc(t, 1234, Exports)
	defer mustRelease(t, b)
	var got struct {
		Total    struct{ Current, Peak int64 }
		Purposes map[string]struct{ Current, Peak, Buffers int64 }
	}
	if err := json.Unmarshal([]byte(v.String()), &got); err != nil {
		t.Fatalf("%v in %s", err, v)
	}
	want := Stats()
	if got.Total.Current != want.Total.Current || got.Purposes["exports"].Current != want.Of(Exports).Current || len(got.Purposes) != len(Purposes()) {
		t.Errorf("got %s, want the figures %+v", v, want)
	}
}

func TestStatsAllocatesNothing(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { Stats() }); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}
