package tenure

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// bytesOf copies the bytes of all states.
func (p *StatePool) bytesOf(t *testing.T) (all [][]byte) {
	t.Helper()
	for _, k := range p.kept {
		use, err := k.t.Use()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, bytes.Clone(use.Data))
		use.Release()
	}
	return all
}

// checkHolders counts the holders of every block again.
func (p *StatePool) checkHolders(t *testing.T) {
	t.Helper()
	counts := make([]int, len(p.holders))
	for q := range p.sequences {
		if len(q.blocks) != p.blocksOf(q.n) {
			t.Fatalf("got %d blocks for %d rows, want %d", len(q.blocks), q.n, p.blocksOf(q.n))
		}
		for _, b := range q.blocks {
			counts[b]++
		}
	}
	if !slices.Equal(counts, p.holders) {
		t.Fatalf("got holders %v, want %v", p.holders, counts)
	}
	free := slices.Clone(p.free)
	slices.Sort(free)
	if len(slices.Compact(free)) != len(p.free) {
		t.Fatalf("got free blocks %v, want each once", p.free)
	}
	for _, b := range p.free {
		if counts[b] != 0 {
			t.Fatalf("block %d is free and has %d holders", b, counts[b])
		}
	}
}

// TestPoolWritesItsOwn draws runs, forks, truncations and ends. A run changes
// no byte but those of rows that it adds, in blocks that one sequence holds,
// and those of free blocks; the counts of holders are those of the lists of
// blocks.
func TestPoolWritesItsOwn(t *testing.T) {
	memorytest.Check(t)
	program, err := ir.Parse(`func @f(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,past,4], %past_v: f32[batch,2,past,4]) {
		%y, %present_k, %present_v = attention(%x, %x, %x, _, %past_k, %past_v) {is_causal = 1}
		return %y, %present_k, %present_v
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := LoadProgram(program, nil, WithStatePool())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const blocks, rows = 12, 3
	pool, err := s.NewStatePool(blocks, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	r := rand.New(rand.NewPCG(3, 9))
	var list []*StateSequence
	ran, refused, shared := 0, 0, 0
	for range 400 {
		switch which := r.IntN(8); {
		case len(list) == 0 || which == 0 && len(list) < 5:
			q, err := pool.NewSequence()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, q)
		case which < 3 && len(list) < 5:
			f, err := list[r.IntN(len(list))].Fork()
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, f)
		case which == 3:
			i := r.IntN(len(list))
			if err := list[i].Close(); err != nil {
				t.Fatal(err)
			}
			list = slices.Delete(list, i, i+1)
		case which == 4:
			q := list[r.IntN(len(list))]
			if err := q.Truncate(r.IntN(q.Len() + 1)); err != nil {
				t.Fatal(err)
			}
		default:
			pool.poisonFree(t)
			before, holders := pool.bytesOf(t), slices.Clone(pool.holders)
			some, n := list[:1+r.IntN(len(list))], 1+r.IntN(4)
			values := make([]float32, len(some)*8*n)
			for i := range values {
				values[i] = r.Float32()
			}
			x, err := tensor.Of(values, len(some), 2, n, 4)
			if err != nil {
				t.Fatal(err)
			}
			out, err := pool.Run(context.Background(), some, Inputs{"x": x})
			_ = x.Release()
			after := pool.bytesOf(t)
			if errors.Is(err, ErrLimit) {
				refused++
				for i := range before {
					if !bytes.Equal(before[i], after[i]) {
						t.Fatal("a refused run has written")
					}
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			out.Release()
			ran++
			shared += pool.checkWritten(t, some, n, before, after, holders)
		}
		pool.checkHolders(t)
	}
	if ran < 50 || refused < 5 || shared < 20 {
		t.Errorf("got %d runs, %d refused ones and %d shared blocks in them, want more of each", ran, refused, shared)
	}
}

// poisonFree fills free blocks with bytes that make NaN.
func (p *StatePool) poisonFree(t *testing.T) {
	t.Helper()
	for _, k := range p.kept {
		w, err := tensor.Write[float32](k.t)
		if err != nil {
			t.Fatal(err)
		}
		size := len(w.Data) / len(p.holders)
		for _, b := range p.free {
			for i := range size {
				w.Data[b*size+i] = float32(math.NaN())
			}
		}
		w.Release()
	}
}

// checkWritten compares the bytes before and after a run that added n rows to
// each of some sequences, and returns how many blocks were shared.
func (p *StatePool) checkWritten(t *testing.T, some []*StateSequence, n int, before, after [][]byte, holders []int) (shared int) {
	t.Helper()
	own := map[[2]int]bool{} // blocks and rows that the run may have written
	for _, q := range some {
		for row := q.n - n; row < q.n; row++ {
			b := q.blocks[row/p.rows]
			if p.holders[b] != 1 {
				t.Fatalf("row %d was written into block %d of %d holders", row, b, p.holders[b])
			}
			own[[2]int{b, row % p.rows}] = true
		}
	}
	for b, had := range holders {
		if had == 0 {
			continue
		}
		if had > 1 {
			shared++
		}
		for i := range before {
			size := len(before[i]) / len(holders)
			row := size / 2 / p.rows // of a head, of which there are two
			for at := 0; at < size; at += row {
				same := bytes.Equal(before[i][b*size+at:][:row], after[i][b*size+at:][:row])
				if !same && !own[[2]int{b, at / row % p.rows}] {
					t.Fatalf("row %d of block %d, which had %d holders, was written", at/row%p.rows, b, had)
				}
			}
		}
	}
	return shared
}
