package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// replayed is a sequence of a pool, with the tokens of which its rows are:
// states that run those alone must have the same outputs.
type replayed struct {
	q    *tenure.StateSequence
	rows [][]float32 // of each token in the sequence, x of [2,4]
}

// replay runs the last n tokens of a sequence behind the others in fresh
// states, whose model computes the rows of tokens without those before.
func (x *replayed) replay(t *testing.T, s *tenure.Session, n int) []float32 {
	t.Helper()
	st, err := s.NewStates(len(x.rows))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if past := x.rows[:len(x.rows)-n]; len(past) > 0 {
		runStates(t, st, tokens(t, past))
	}
	return runStates(t, st, tokens(t, x.rows[len(x.rows)-n:]))
}

// tokens makes x, [1,2,tokens,4], of tokens.
func tokens(t *testing.T, list ...[][]float32) *tensor.Tensor {
	t.Helper()
	n, data := len(list[0]), []float32{}
	for _, rows := range list {
		for h := range 2 {
			for _, row := range rows {
				data = append(data, row[4*h:][:4]...)
			}
		}
	}
	return modeltest.Of(t, data, len(list), 2, n, 4)
}

// TestPoolPrograms draws programs of runs, failing runs, forks, truncations,
// ends, files and new sequences, in pools that grow, that have a window, and
// that have neither, and compares each run with a replay of the tokens whose
// rows are left.
func TestPoolPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		apart bool // sequences of several lengths run together
		near  float64
	}{
		"attending":  {attending, true, 1e-5},
		"scattering": {scattering, true, 1e-5},
		"joining":    {rowForms["joined heads"], false, 0},
		"rows last":  {rowForms["rows last"], false, 0},
		"in one":     {rowForms["keys and values in one"], false, 0},
		"16 bits":    {narrowed(attending, "f16"), true, 2e-3},
	} {
		for kind, opts := range map[string][]tenure.StatePoolOption{
			"plain":  nil,
			"grows":  {tenure.WithPoolGrowth(50)},
			"window": {tenure.WithSequenceWindow(5)},
			"all":    {tenure.WithPoolGrowth(21), tenure.WithSequenceWindow(4), tenure.WithLongestSequence(13)},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				memorytest.Check(t)
				alone := c.text
				if name == "scattering" {
					alone = attending
				}
				single := modeltest.Session(t, modelOf(t, alone, tenure.WithStates()))
				pooled := modeltest.Session(t, modelOf(t, c.text, tenure.WithStatePool()))
				for _, rows := range []int{1, 3} {
					p := &poolProgram{pool: poolOf(t, pooled, 10, rows, opts...), single: single, rows: rows, apart: c.apart, near: c.near,
						places: strings.Contains(c.text, "%at:"), r: rand.New(rand.NewPCG(uint64(len(name)), uint64(rows))), dir: t.TempDir()}
					if strings.Contains("window all", kind) {
						p.window = map[string]int{"window": 5, "all": 4}[kind]
					}
					for range 160 {
						p.step(t)
					}
					p.end(t)
					if grown := statsOf(t, p.pool).Blocks > 10; grown != (kind == "grows" || kind == "all") {
						t.Errorf("got %d blocks at the end", statsOf(t, p.pool).Blocks)
					}
				}
			})
		}
	}
}

// poolProgram is a random program over the sequences of a pool.
type poolProgram struct {
	pool         *tenure.StatePool
	single       *tenure.Session
	rows         int // of a block
	window       int // 0 for none
	apart        bool
	near         float64
	places       bool // the model is told where rows are written
	r            *rand.Rand
	dir          string
	list         []*replayed
	saved        *replayed // what the file has
	ran, refused int
	failed       int
}

func (p *poolProgram) step(t *testing.T) {
	t.Helper()
	if len(p.list) == 0 {
		p.list = append(p.list, &replayed{q: textOf(t, p.pool)})
	}
	i := p.r.IntN(len(p.list))
	x, file := p.list[i], filepath.Join(p.dir, "sequence.safetensors")
	switch which := p.r.IntN(16); {
	case which == 0 && len(p.list) < 5:
		p.list = append(p.list, &replayed{q: textOf(t, p.pool)})
	case which < 3 && len(p.list) < 5:
		f, err := x.q.Fork()
		if err != nil {
			t.Fatal(err)
		}
		p.list = append(p.list, &replayed{f, slices.Clone(x.rows)})
	case which == 3:
		if err := x.q.Close(); err != nil {
			t.Fatal(err)
		}
		p.list = slices.Delete(p.list, i, i+1)
	case which == 4:
		n := p.r.IntN(x.q.Len() + 1)
		if err := x.q.Truncate(n); err != nil {
			t.Fatal(err)
		}
		x.rows = x.rows[:n]
	case which == 5:
		if err := x.q.Save(file); err != nil {
			t.Fatal(err)
		}
		p.saved = &replayed{rows: slices.Clone(x.rows)}
	case which == 6 && p.saved != nil:
		switch err := x.q.Load(file); {
		case err == nil:
			x.rows = slices.Clone(p.saved.rows)
		case errors.Is(err, tenure.ErrLimit):
			p.refused++
		default:
			t.Fatal(err)
		}
	default:
		p.run(t, i, which < 9)
	}
	for _, x := range p.list {
		if x.q.Len() != len(x.rows) {
			t.Fatalf("got %d rows, want %d", x.q.Len(), len(x.rows))
		}
	}
}

var errStopped = errors.New("stopped")

// run runs some tokens of sequence i and of others; if it is to fail, it ends
// behind a call.
func (p *poolProgram) run(t *testing.T, i int, fail bool) {
	t.Helper()
	some := []*replayed{p.list[i]}
	for k, x := range p.list {
		if k != i && (p.apart || len(x.rows) == len(p.list[i].rows)) && p.r.IntN(2) == 0 {
			some = append(some, x)
		}
	}
	n := 1 + p.r.IntN(3)
	var sequences []*tenure.StateSequence
	var fresh [][][]float32
	var at []int64
	for _, x := range some {
		sequences, at = append(sequences, x.q), append(at, int64(x.q.Len()))
		rows := make([][]float32, n)
		for k := range rows {
			rows[k] = make([]float32, 8)
			for j := range rows[k] {
				rows[k][j] = p.r.Float32() - 0.5
			}
		}
		fresh = append(fresh, rows)
	}
	in := tenure.Inputs{"x": tokens(t, fresh...)}
	if p.places {
		in["at"] = modeltest.Of(t, at, len(at))
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var opts []tenure.RunOption
	if calls := p.r.IntN(6); fail {
		opts = append(opts, tenure.Watch(func(*ir.Call, time.Duration) {
			if calls--; calls < 0 {
				cancel(errStopped)
			}
		}))
	}
	out, err := p.pool.Run(ctx, sequences, in, opts...)
	defer out.Release()
	switch {
	case errors.Is(err, tenure.ErrLimit):
		p.refused++
		for len(p.list) > 1 || p.list[0].q.Len() > 0 { // of which one may be too long by itself
			if err := p.list[len(p.list)-1].q.Close(); err != nil {
				t.Fatal(err)
			}
			if p.list = p.list[:len(p.list)-1]; len(p.list) == 0 {
				break
			}
		}
		return
	case err != nil && fail && ctx.Err() != nil:
		p.failed++
		return
	case err != nil:
		t.Fatal(err)
	}
	p.ran++
	got := modeltest.Values(t, out["y"])
	per := len(got) / len(some)
	for k, x := range some {
		x.rows = append(slices.Clone(x.rows), fresh[k]...)
		wantNear(t, got[k*per:][:per], x.replay(t, p.single, n), p.near)
		if over := len(x.rows) - p.window; p.window > 0 && over > 0 {
			x.rows = x.rows[over/p.rows*p.rows:]
		}
	}
}

func (p *poolProgram) end(t *testing.T) {
	t.Helper()
	if p.ran < 30 || p.failed < 3 {
		t.Errorf("got %d runs and %d that failed, want more", p.ran, p.failed)
	}
	for _, x := range p.list {
		if err := x.q.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if s := statsOf(t, p.pool); s.Free != s.Blocks || s.Used != 0 || s.Shared != 0 || s.Sequences != 0 {
		t.Errorf("after all sequences were closed: got %+v, want all blocks free", s)
	}
}

// TestPoolGrowth grows when blocks are used up, and refuses more blocks than it
// may have, and those for which the session has promised no memory.
func TestPoolGrowth(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, attending, tenure.WithStatePool())
	s := modeltest.Session(t, m)
	run := func(p *tenure.StatePool, q *tenure.StateSequence, n int) error {
		t.Helper()
		out, err := p.Run(context.Background(), []*tenure.StateSequence{q}, tenure.Inputs{"x": drawn(t, 1, 1, 2, n, 4)})
		out.Release()
		return err
	}
	pool := poolOf(t, s, 2, 4, tenure.WithPoolGrowth(7))
	q := textOf(t, pool)
	for _, step := range []struct{ rows, blocks int }{{8, 2}, {1, 4}, {8, 7}} {
		if err := run(pool, q, step.rows); err != nil {
			t.Fatal(err)
		}
		if got := statsOf(t, pool); got.Blocks != step.blocks || got.Bytes != int64(2*step.blocks*4*2*4*4) {
			t.Errorf("after %d rows: got %+v, want %d blocks", q.Len(), got, step.blocks)
		}
	}
	before := statsOf(t, pool)
	err := run(pool, q, 12)
	if want := "12 rows behind 17 of sequence 0, want at most 28"; !errors.Is(err, tenure.ErrLimit) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("got error %v, want ErrLimit and %q", err, want)
	}
	other := textOf(t, pool)
	err = run(pool, other, 9)
	if want := "take 3 blocks of 4 rows, want at most the 2 of 7"; !errors.Is(err, tenure.ErrLimit) || !strings.Contains(fmt.Sprint(err), want) {
		t.Errorf("got error %v, want ErrLimit and %q", err, want)
	}
	if got := statsOf(t, pool); got.Blocks != before.Blocks || got.Free != before.Free {
		t.Errorf("a refused run: got %+v, want %+v", got, before)
	}
	promised := modeltest.Session(t, m, tenure.WithUpTo("batch", 2), tenure.WithUpTo("tokens", 16), tenure.WithUpTo("blocks", 4), tenure.WithSizes("block_rows", 4),
		tenure.WithSizes("table", 8))
	pool = poolOf(t, promised, 2, 4, tenure.WithPoolGrowth(8))
	q = textOf(t, pool)
	if err := errors.Join(run(pool, q, 8), run(pool, q, 8)); err != nil || statsOf(t, pool).Blocks != 4 {
		t.Errorf("got error %v and %+v, want 4 blocks", err, statsOf(t, pool))
	}
	if err := run(pool, q, 1); !errors.Is(err, tenure.ErrInput) || !strings.Contains(fmt.Sprint(err), `"blocks"`) || q.Len() != 16 {
		t.Errorf("more blocks than were promised: got error %v and %d rows, want ErrInput with the dimension, and 16", err, q.Len())
	}
	if err := errors.Join(q.Truncate(3), run(pool, q, 1)); err != nil {
		t.Errorf("a run after one that was refused: got error %v", err)
	}
}

// TestPoolWindow keeps one plan and one number of blocks however long a
// sequence gets, and leaves blocks that a fork has.
func TestPoolWindow(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()), tenure.WithThreads(1))
	pool := poolOf(t, s, 8, 4, tenure.WithSequenceWindow(8), tenure.WithLongestSequence(12))
	q := textOf(t, pool)
	run := func(n int) {
		t.Helper()
		out, err := pool.Run(context.Background(), []*tenure.StateSequence{q}, tenure.Inputs{"x": drawn(t, 1, 1, 2, n, 4)})
		if err != nil {
			t.Fatal(err)
		}
		out.Release()
	}
	run(8)
	run(1)
	compiled := s.Stats().Compiled
	for i := range 100 {
		if run(1); q.Len() != 8+(i+2)%4 || statsOf(t, pool).Used != (q.Len()+3)/4 {
			t.Fatalf("after %d runs: got %d rows in %d blocks", i+1, q.Len(), statsOf(t, pool).Used)
		}
	}
	if got := s.Stats().Compiled - compiled; got != 0 || statsOf(t, pool).Copied != 0 {
		t.Errorf("got %d more plans and %d bytes copied, want none", got, statsOf(t, pool).Copied)
	}
	f, err := q.Fork()
	if err != nil {
		t.Fatal(err)
	}
	had := f.Len()
	for range 12 {
		run(1)
	}
	if f.Len() != had || statsOf(t, pool).Shared != 0 || statsOf(t, pool).Used < 5 {
		t.Errorf("got %d rows of the fork and %+v, want %d and blocks of both", f.Len(), statsOf(t, pool), had)
	}
}

// TestPoolOptions refuses options that do not fit together.
func TestPoolOptions(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()))
	for want, opts := range map[string][]tenure.StatePoolOption{
		"got growth to 3 blocks, want at least the 4": {tenure.WithPoolGrowth(3)},
		"got growth to 0 blocks":                      {tenure.WithPoolGrowth(0)},
		"got a window of 0 rows":                      {tenure.WithSequenceWindow(0)},
		"got a window of 13 rows, want at most 12":    {tenure.WithSequenceWindow(13)},
		"got a window of 9 rows, want at most 8":      {tenure.WithSequenceWindow(9), tenure.WithLongestSequence(9)},
		"got a window of 9223372036854775807 rows":    {tenure.WithSequenceWindow(1<<63 - 1)},
		"got -2 rows for the longest sequence":        {tenure.WithLongestSequence(-2)},
	} {
		if _, err := s.NewStatePool(4, 4, opts...); !errors.Is(err, tenure.ErrInput) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got error %v, want ErrInput and %q", err, want)
		}
	}
	poolOf(t, s, 4, 4, tenure.WithSequenceWindow(12), tenure.WithPoolGrowth(4), tenure.WithLongestSequence(1<<63-1))
}
