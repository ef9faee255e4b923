package exec_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/exec"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// common is memory that several sets of panels have in common.
type common struct {
	made  map[[32]byte]*memory.Buffer
	found int
	fault error
}

func newCommon(t *testing.T) *common {
	c := &common{made: map[[32]byte]*memory.Buffer{}}
	t.Cleanup(func() {
		for _, b := range c.made {
			if err := b.Release(); err != nil {
				t.Error(err)
			}
		}
	})
	return c
}

func (c *common) get(_ context.Context, key [32]byte, size int, fill func([]byte) error) (*memory.Buffer, error) {
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

// TestCommonPanels packs in two sets of panels what both have in common then:
// results are the same, and nothing is in memory besides.
func TestCommonPanels(t *testing.T) {
	memorytest.Check(t)
	c := newCommon(t)
	p := parse(t, twoProducts)
	input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, 4)))
	want := interpret(t, p, tableFor(p), [][]byte{input})
	before := memory.Stats().Of(memory.Weights)
	for i := range 2 {
		weights := tableFor(p)
		panels := exec.NewCommonPanels(weights, c.get)
		e := compileWith(t, twoProducts, weights, panels)
		for range 2 { // the second time there is nothing to do
			if err := e.Pack(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if len(c.made) != 1 || c.found != i {
			t.Errorf("set %d: got %d made and %d found, want one and %d", i, len(c.made), c.found, i)
		}
		size, shared := panels.Bytes()
		if size < e.Plan.WeightBytes || size > e.Plan.WeightBytes+3*memory.Alignment || !shared {
			t.Errorf("set %d: got %d bytes, common %v, want the %d promised", i, size, shared, e.Plan.WeightBytes)
		}
		if after := memory.Stats().Of(memory.Weights); after.Current != before.Current || len(weights.spared) != 2 {
			t.Errorf("set %d: got %d bytes of weights in memory and %v spared, want as before and w and v", i, after.Current-before.Current, weights.spared)
		}
		for name := range weights.spared { // whoever reads there finds other numbers
			for i := range weights.WeightMap[name] {
				weights.WeightMap[name][i] = 0x7f
			}
		}
		for k, got := range runOnce(t, e, input) {
			if !bytes.Equal(got, want[k]) {
				t.Errorf("set %d: output %d differs from that of the interpreter", i, k)
			}
		}
		other := strings.ReplaceAll(twoProducts, "[5,", "[1,")
		if err := compileWith(t, other, weights, panels).Pack(context.Background()); err != nil || len(c.made) != 1 {
			t.Errorf("set %d: another shape: got %v and %d made, want what is there", i, err, len(c.made))
		}
		if err := panels.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCommonKeys gives programs the same memory where they need the same made
// of the same bytes, and only there.
func TestCommonKeys(t *testing.T) {
	memorytest.Check(t)
	c := newCommon(t)
	pack := func(text string, change func(*table)) int {
		weights := tableFor(parse(t, text))
		if change != nil {
			change(weights)
		}
		panels := exec.NewCommonPanels(weights, c.get)
		defer panels.Release()
		if err := compileWith(t, text, weights, panels).Pack(context.Background()); err != nil {
			t.Fatal(err)
		}
		return len(c.made)
	}
	steps := []int{
		pack(twoProducts, nil),
		pack(strings.ReplaceAll(twoProducts, "%y", "%another"), nil), // the same weights
		pack(twoProducts, func(w *table) { w.WeightMap["v"][77]++ }),
		pack(twoProducts, func(w *table) { w.WeightMap["b"][7]++ }),
		pack(strings.Replace(twoProducts, "{transB = 1}", "", 1), nil), // another form
		pack(strings.Replace(twoProducts, "weight @b: f32[100]", "weight @b: f32[100]\n\tweight @c: f32[100]", 1), nil),
	}
	if want := []int{1, 1, 2, 3, 4, 4}; !slices.Equal(steps, want) {
		t.Errorf("got %v copies after each program, want %v", steps, want)
	}
}

// TestCommonFails leaves the weights as they were, and works when what failed
// works again.
func TestCommonFails(t *testing.T) {
	memorytest.Check(t)
	c := newCommon(t)
	c.fault = errors.New("nowhere to meet")
	p := parse(t, twoProducts)
	weights := tableFor(p)
	panels := exec.NewCommonPanels(weights, c.get)
	defer panels.Release()
	e := compileWith(t, twoProducts, weights, panels)
	if err := e.Pack(context.Background()); !errors.Is(err, c.fault) {
		t.Errorf("got %v, want %v", err, c.fault)
	}
	if size, _ := panels.Bytes(); size != 0 {
		t.Errorf("got %d bytes of panels, want none", size)
	}
	c.fault = nil
	input := bytesFor(p.Body.Params[0].Type, rand.New(rand.NewPCG(3, 4)))
	want := interpret(t, p, weights, [][]byte{input})
	for i, got := range runOnce(t, e, input) {
		if !bytes.Equal(got, want[i]) {
			t.Errorf("output %d differs from that of the interpreter", i)
		}
	}
}
