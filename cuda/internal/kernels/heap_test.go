package kernels_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// heap is global memory in one piece that knows which bytes were written.
type heap struct {
	data    []byte
	written []bool
}

const base = 0x7000_0000_0000

func newHeap(n int) *heap {
	h := &heap{data: make([]byte, n), written: make([]bool, n)}
	for i := range h.data {
		h.data[i] = byte(0xc0 + i%7)
	}
	return h
}

func (h *heap) Bytes(address uint64, n int, _ bool) ([]byte, error) {
	if at := address - base; at <= uint64(len(h.data)) && uint64(n) <= uint64(len(h.data))-at {
		return h.data[at:][:n], nil
	}
	return nil, fmt.Errorf("got %d bytes at offset %d, want some of [0, %d)", n, int64(address-base), len(h.data))
}

func (h *heap) Written(address uint64, n int) bool {
	for _, w := range h.written[address-base:][:n] {
		if !w {
			return false
		}
	}
	return true
}

func (h *heap) MarkWritten(address uint64, n int) {
	for i := range n {
		h.written[address-base+uint64(i)] = true
	}
}

// put writes an element before a launch.
func (h *heap) put(at int, b []byte) {
	copy(h.data[at:], b)
	h.MarkWritten(base+uint64(at), len(b))
}

// module parses the text of all kernels once.
var module = sync.OnceValues(func() (*ptx.Module, error) {
	text, err := kernels.Source("")
	if err != nil {
		return nil, err
	}
	return ptx.Parse(text)
})

// run runs a launch in the interpreter; findings are errors.
func run(t *testing.T, h *heap, l *kernels.Launch, seed uint64) {
	t.Helper()
	if l == nil {
		return
	}
	m, err := module()
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel(l.Kernel.Name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := k.Run(ptx.Launch{Grid: [3]uint32{l.Blocks, 1, 1}, Block: [3]uint32{kernels.Threads, 1, 1}, Args: l.Args, Memory: h, Seed: seed, Races: true})
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
}

// place is an operand in a heap: byte offsets instead of an address.
type place struct {
	offset  int
	strides []int64
}

func (p place) operand() kernels.Operand {
	return kernels.Operand{Address: base + uint64(p.offset), Strides: p.strides}
}

// each calls f with the offset of every element of each place.
func each(size []int64, places []place, f func(at []int)) {
	at := make([]int, len(places))
	for j, p := range places {
		at[j] = p.offset
	}
	var visit func(d int)
	visit = func(d int) {
		if d == len(size) {
			f(at)
			return
		}
		for range size[d] {
			visit(d + 1)
			for j, p := range places {
				at[j] += int(p.strides[d])
			}
		}
		for j, p := range places {
			at[j] -= int(p.strides[d] * size[d])
		}
	}
	visit(0)
}

// sizes draws the sizes of a tensor: often small, sometimes with a 0, sometimes
// one long axis.
func sizes(r *rand.Rand) []int64 {
	rank := r.IntN(kernels.MaxRank + 1)
	size := make([]int64, rank)
	n := int64(1)
	for d := range size {
		size[d] = 1 + r.Int64N(4)
		if r.IntN(40) == 0 {
			size[d] = 0
		}
		if n *= size[d]; n > 600 {
			size[d] = 1
			n = 600
		}
	}
	if rank > 0 && r.IntN(3) == 0 {
		for d := range size {
			size[d] = 1
		}
		size[r.IntN(rank)] = []int64{0, 1, 2, 17, 255, 256, 257, 1001}[r.IntN(8)]
	}
	return size
}

// layout draws strides of an operand: contiguous, with gaps, in any order of
// the axes, reversed; with repeats where elements may be read twice. It begins
// at from and returns the end of its bytes.
func layout(r *rand.Rand, size []int64, element, from int, repeats bool) (place, int) {
	order := make([]int, len(size))
	for d := range order {
		order[d] = len(size) - 1 - d
	}
	gaps := r.IntN(2) == 0
	if gaps {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	p := place{offset: (from + 15) / 16 * 16, strides: make([]int64, len(size))}
	if r.IntN(3) == 0 {
		p.offset += element // no multiple of 16
	}
	step, low := int64(element), int64(0)
	for _, d := range order {
		if repeats && r.IntN(4) == 0 {
			continue
		}
		if gaps && r.IntN(3) == 0 {
			step += int64(element) * r.Int64N(3)
		}
		p.strides[d] = step
		span := step * max(size[d], 1)
		if gaps && r.IntN(4) == 0 {
			p.strides[d] = -step
			low += step * (max(size[d], 1) - 1)
		}
		step = span
	}
	p.offset += int(low)
	return p, p.offset - int(low) + int(step)
}

func compare(t *testing.T, what string, h *heap, want []byte) {
	t.Helper()
	if !bytes.Equal(h.data, want) {
		for i := range want {
			if h.data[i] != want[i] {
				t.Fatalf("%s: byte %d: got %#02x, want %#02x", what, i, h.data[i], want[i])
			}
		}
	}
}
