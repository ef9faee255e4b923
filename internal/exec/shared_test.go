package exec_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// sharedMemory is memory that several stores have in common.
type sharedMemory struct {
	made  map[[32]byte]*memory.Buffer
	found int
	fault error
}

func newShared(t *testing.T) *sharedMemory {
	c := &sharedMemory{made: map[[32]byte]*memory.Buffer{}}
	t.Cleanup(func() {
		for _, b := range c.made {
			if err := b.Release(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

func (c *sharedMemory) get(_ context.Context, key [32]byte, size int, fill func([]byte) error) (*memory.Buffer, error) {
	if c.fault != nil {
		return nil, c.fault
	}
	b := c.made[key]
	if b != nil {
		c.found++
		return b, b.Retain()
	}
	b, err := memory.Alloc(size, memory.Shared)
	if err == nil {
		c.made[key] = b
		err = errors.Join(fill(b.Bytes()), b.Retain())
	}
	return b, err
}

// TestPackShared packs in two stores what both have in common then: results
// are the same, and nothing is in memory besides.
func TestPackShared(t *testing.T) {
	memorytest.Check(t)
	c := newShared(t)
	p := parse(t, twoProducts)
	for i := range 2 {
		before := memory.Stats().Of(memory.Weights)
		s, plain := storeOf(t, p, weights.Options{Share: c.get})
		e := compileWith(t, twoProducts, s)
		for range 2 { // the second time there is nothing to do
			mustPack(t, e)
		}
		if len(c.made) != 1 || c.found != i {
			t.Errorf("store %d: got %d made and %d found, want one and %d", i, len(c.made), c.found, i)
		}
		// Bytes that could not be unloaded were moved, so that no bytes of the
		// weights are in private memory.
		private, size := s.InMemory()
		if private != 0 || size < planOf(t, e).WeightBytes || size > planOf(t, e).WeightBytes+3*memory.Alignment {
			t.Errorf("store %d: got %d private and %d shared bytes, want the %d promised, shared", i, private, size, planOf(t, e).WeightBytes)
		}
		bias := int64(len(plain["b"]))
		if after := memory.Stats().Of(memory.Weights); after.Current != before.Current || s.Figures() != (weights.Figures{Shared: bias}) {
			t.Errorf("store %d: got %d bytes of weights in memory and %+v, want as before and the bias", i, after.Current-before.Current, s.Figures())
		}
		wantPlain(t, e, p, plain)
		if got := s.Figures(); got != (weights.Figures{Shared: bias}) {
			t.Errorf("store %d: got %+v after a run, want only the bias loaded", i, got)
		}
		other := strings.ReplaceAll(twoProducts, "[5,", "[1,")
		if err := compileWith(t, other, s).Pack(context.Background()); err != nil || len(c.made) != 1 {
			t.Errorf("store %d: another shape: got %v and %d made, want what is there", i, err, len(c.made))
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSharedKeys: programs share memory exactly where they need the same
// forms of the same bytes.
func TestSharedKeys(t *testing.T) {
	memorytest.Check(t)
	c := newShared(t)
	pack := func(text string, change func(ir.WeightMap)) int {
		p := parse(t, text)
		_, plain := storeOf(t, p, weights.Options{})
		if change != nil {
			change(plain)
		}
		s := storeWith(t, p, plain, weights.Options{Share: c.get})
		mustPack(t, compileWith(t, text, s))
		return len(c.made)
	}
	steps := []int{
		pack(twoProducts, nil),
		pack(strings.ReplaceAll(twoProducts, "%y", "%another"), nil), // the same weights
		pack(twoProducts, func(w ir.WeightMap) { w["v"][77]++ }),
		pack(twoProducts, func(w ir.WeightMap) { w["b"][7]++ }),
		pack(strings.Replace(twoProducts, "{transB = 1}", "", 1), nil), // another form
		pack(strings.Replace(twoProducts, "weight @b: f32[100]", "weight @b: f32[100]\n\tweight @c: f32[100]", 1), nil),
	}
	if want := []int{1, 1, 2, 3, 4, 5}; !slices.Equal(steps, want) {
		t.Errorf("got %v copies after each program, want %v", steps, want)
	}
}

// TestShareFails leaves the weights as they were, and works when what failed
// works again.
func TestShareFails(t *testing.T) {
	memorytest.Check(t)
	c := newShared(t)
	c.fault = errors.New("nowhere to meet")
	p := parse(t, twoProducts)
	s, plain := storeOf(t, p, weights.Options{Share: c.get})
	e := compileWith(t, twoProducts, s)
	if err := e.Pack(context.Background()); !errors.Is(err, c.fault) {
		t.Errorf("got %v, want %v", err, c.fault)
	}
	all := int64(len(plain["w"]) + len(plain["v"]) + len(plain["b"]))
	if private, shared := s.InMemory(); private != all || shared != 0 {
		t.Errorf("got %d private and %d shared bytes, want the weights, %d, and no panels", private, shared, all)
	}
	c.fault = nil
	wantPlain(t, e, p, plain)
}
