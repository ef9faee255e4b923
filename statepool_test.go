package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// scattering is attending in the form of GroupQueryAttention: an input says
// where rows are written.
const scattering = `func @scattering(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,room,4], %past_v: f32[batch,2,room,4], %at: i64[batch]) {
	%v = mul(%x, %x)
	%present_k = tensor_scatter(%past_k, %x, %at)
	%present_v = tensor_scatter(%past_v, %v, %at)
	%n = shape(%x) {start = 2, end = 3}
	%keys = add(%at, %n)
	%y = attention(%x, %present_k, %present_v, _, _, _, %keys) {is_causal = 1}
	return %y, %present_k, %present_v
}`

func poolOf(t testing.TB, s *tenure.Session, blocks, rows int, opts ...tenure.StatePoolOption) *tenure.StatePool {
	t.Helper()
	p, err := s.NewStatePool(blocks, rows, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func textOf(t testing.TB, p *tenure.StatePool) *tenure.StateSequence {
	t.Helper()
	q, err := p.NewSequence()
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func statsOf(t testing.TB, p *tenure.StatePool) tenure.StatePoolStats {
	t.Helper()
	s, err := p.Stats()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pooledText is a sequence of a pool, and states of its own that must have the
// same rows.
type pooledText struct {
	pooled *tenure.StateSequence
	alone  *tenure.States
}

// TestPoolAgainstStates draws runs of some sequences, forks, truncations and
// ends, and compares every run with states that share nothing.
func TestPoolAgainstStates(t *testing.T) {
	for _, c := range []struct{ name, text, alone string }{{"attending", attending, attending}, {"packed", packed, packed}, {"scattering", scattering, attending},
		{"attending f16", narrowed(attending, "f16"), narrowed(attending, "f16")}, {"attending bf16", narrowed(attending, "bf16"), narrowed(attending, "bf16")},
		{"scattering f16", narrowed(scattering, "f16"), narrowed(attending, "f16")}, {"scattering bf16", narrowed(scattering, "bf16"), narrowed(attending, "bf16")}} {
		t.Run(c.name, func(t *testing.T) {
			memorytest.Check(t)
			for _, rows := range []int{1, 3, 4} {
				poolAgainstStates(t, c.text, c.alone, rows)
			}
		})
	}
}

// narrowed is a model with states of 16 bits, whose x and y are f32.
func narrowed(text, dt string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "f32", dt), "%x: "+dt, "%wide: f32")
	text = strings.Replace(text, "%v = mul(%x, %x)", "%x = cast(%wide) {to = "+dt+"}\n%v = mul(%x, %x)", 1)
	text = strings.Replace(text, "return %y,", "%all = cast(%y) {to = f32}\nreturn %all,", 1)
	return strings.NewReplacer("%wide", "%x", "%x", "%n16", "%all", "%y", "%y", "%y16").Replace(text)
}

func poolAgainstStates(t *testing.T, text, alone string, blockRows int) {
	const blocks = 40
	r := rand.New(rand.NewPCG(7, uint64(blockRows)))
	pool := poolOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStatePool())), blocks, blockRows)
	single := modeltest.Session(t, modelOf(t, alone, tenure.WithStates()))
	var texts []pooledText
	fresh := func() {
		texts = append(texts, pooledText{textOf(t, pool), statesOf(t, single, blocks*blockRows)})
	}
	fresh()
	refused := 0
	for step := range 150 {
		i := r.IntN(len(texts))
		switch which := r.IntN(10); {
		case which == 0 && len(texts) < 6:
			fresh()
		case which < 3 && len(texts) < 6:
			f, err := texts[i].pooled.Fork()
			if err != nil {
				t.Fatal(err)
			}
			g, err := texts[i].alone.Fork()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { g.Close() })
			texts = append(texts, pooledText{f, g})
		case which == 3 && len(texts) > 1:
			if err := errors.Join(texts[i].pooled.Close(), texts[i].alone.Close()); err != nil {
				t.Fatal(err)
			}
			texts = slices.Delete(texts, i, i+1)
		case which == 4:
			n := r.IntN(texts[i].alone.Len() + 1)
			if err := errors.Join(texts[i].pooled.Truncate(n), texts[i].alone.Truncate(n)); err != nil {
				t.Fatal(err)
			}
		default:
			r.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
			if !runTexts(t, pool, texts[:1+r.IntN(len(texts))], text, uint64(step), 1+r.IntN(3)) {
				refused++
				for len(texts) > 1 {
					end := texts[len(texts)-1]
					if err := errors.Join(end.pooled.Close(), end.alone.Close()); err != nil {
						t.Fatal(err)
					}
					texts = texts[:len(texts)-1]
				}
				if err := errors.Join(texts[0].pooled.Truncate(0), texts[0].alone.Reset()); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, x := range texts {
			if x.pooled.Len() != x.alone.Len() {
				t.Fatalf("step %d: got %d rows, want %d", step, x.pooled.Len(), x.alone.Len())
			}
		}
	}
	for _, x := range texts {
		if err := errors.Join(x.pooled.Close(), x.alone.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if s := statsOf(t, pool); s.Free != blocks || s.Used != 0 || s.Shared != 0 || s.Sequences != 0 {
		t.Errorf("after all sequences were closed: got %+v, want all blocks free", s)
	}
	if blockRows == 1 && refused == 0 {
		t.Error("got no run that was refused, want some: the pool is small")
	}
	if s := statsOf(t, pool); blockRows > 1 && s.Copied == 0 {
		t.Error("got no copy of a shared block, want some")
	}
}

// runTexts runs n tokens of each text, in one run of the pool and in a run of
// each of the states. It reports whether the pool had room.
func runTexts(t *testing.T, pool *tenure.StatePool, texts []pooledText, text string, seed uint64, n int) bool {
	t.Helper()
	dims := []int{len(texts), 2, n, 4}
	if text == packed {
		dims = []int{len(texts), n, 8}
	}
	x := drawn(t, seed, dims...)
	all, per := modeltest.Values(t, x), 8*n
	in := tenure.Inputs{"x": x}
	var at []int64
	var list []*tenure.StateSequence
	for _, x := range texts {
		list, at = append(list, x.pooled), append(at, int64(x.alone.Len()))
	}
	if strings.Contains(text, "%at:") {
		in["at"] = modeltest.Of(t, at, len(at))
	}
	out, err := pool.Run(context.Background(), list, in)
	if errors.Is(err, tenure.ErrLimit) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if len(out) != 1 {
		t.Fatalf("got %d outputs, want y alone: %v", len(out), out)
	}
	got := modeltest.Values(t, out["y"])
	for i, x := range texts {
		one := modeltest.Of(t, all[i*per:][:per], append([]int{1}, dims[1:]...)...)
		wantNear(t, got[i*len(got)/len(texts):][:len(got)/len(texts)], runStates(t, x.alone, one), 0)
	}
	return true
}

// TestPoolPrompts runs prompts and then steps, two sequences of different
// lengths together, with blocks of several sizes: the results are those of
// states of their own, bit for bit.
func TestPoolPrompts(t *testing.T) {
	memorytest.Check(t)
	for name, text := range map[string]string{"attending": attending, "packed": packed, "f16": narrowed(attending, "f16"), "bf16": narrowed(attending, "bf16")} {
		single := modeltest.Session(t, modelOf(t, text, tenure.WithStates()))
		session := modeltest.Session(t, modelOf(t, text, tenure.WithStatePool()))
		for _, rows := range []int{1, 5, 16, 200} {
			for _, runs := range [][]int{{1, 1, 1}, {5, 5, 1}, {90, 1, 3, 1}, {40, 70, 1}, {1, 33, 4}} {
				t.Run(fmt.Sprintf("%s/blocks of %d/%v", name, rows, runs), func(t *testing.T) {
					pool := poolOf(t, session, 2*(200/rows+1), rows)
					a := pooledText{textOf(t, pool), statesOf(t, single, 300)}
					b := pooledText{textOf(t, pool), statesOf(t, single, 128)}
					texts := []pooledText{a, b}
					runTexts(t, pool, texts[1:], text, 7, 9)
					for i, n := range runs {
						if !runTexts(t, pool, texts, text, uint64(i), n) {
							t.Fatal("the pool has too few blocks")
						}
					}
				})
			}
		}
	}
}

// TestPoolOnePlan decodes sequences of different lengths: one plan serves all
// lengths, and a fork copies no more than a block of each state.
func TestPoolOnePlan(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()), tenure.WithThreads(1))
	pool := poolOf(t, s, 64, 16)
	a, b := textOf(t, pool), textOf(t, pool)
	run := func(n int, list ...*tenure.StateSequence) {
		t.Helper()
		out, err := pool.Run(context.Background(), list, tenure.Inputs{"x": drawn(t, 1, len(list), 2, n, 4)})
		if err != nil {
			t.Fatal(err)
		}
		out.Release()
	}
	run(5, a)
	run(1, a, b)
	compiled := s.Stats().Compiled
	for range 200 {
		run(1, a, b)
	}
	if got := s.Stats().Compiled - compiled; got != 0 || a.Len() != 206 || b.Len() != 201 {
		t.Errorf("got %d more plans, %d and %d rows, want none, 206 and 201", got, a.Len(), b.Len())
	}
	f, err := a.Fork()
	if err != nil {
		t.Fatal(err)
	}
	if got := statsOf(t, pool); got.Copied != 0 || got.Shared != 13 {
		t.Errorf("a fork: got %d bytes copied and %d blocks shared, want 0 and 13", got.Copied, got.Shared)
	}
	run(1, a, f)
	if got, block := statsOf(t, pool), int64(2*2*16*4*4); got.Copied != block || got.Shared != 12 {
		t.Errorf("a run of both: got %d bytes copied and %d blocks shared, want %d, which is one block of two states, and 12", got.Copied, got.Shared, block)
	}
}

// TestPoolLimits refuses runs without free blocks before it writes, and leaves
// sequences as they were after a run that ends.
func TestPoolLimits(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()))
	pool := poolOf(t, s, 4, 4)
	a := textOf(t, pool)
	run := func(n int, list ...*tenure.StateSequence) error {
		t.Helper()
		out, err := pool.Run(context.Background(), list, tenure.Inputs{"x": drawn(t, 1, len(list), 2, n, 4)})
		out.Release()
		return err
	}
	if err := run(6, a); err != nil {
		t.Fatal(err)
	}
	f, err := a.Fork()
	if err != nil {
		t.Fatal(err)
	}
	before := statsOf(t, pool)
	err = run(3, a, f)
	if want := "3 rows more of 2 sequences take 3 blocks of 4 rows, want at most the 2 of 4 that are free"; !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), want) {
		t.Errorf("got error %v, want ErrLimit and %q", err, want)
	}
	if got := statsOf(t, pool); got != before || a.Len() != 6 || f.Len() != 6 {
		t.Errorf("a refused run: got %+v, %d and %d rows, want %+v and 6 of both", got, a.Len(), f.Len(), before)
	}
	if err := run(2, a, f); err != nil {
		t.Errorf("a run that fits: got error %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	before = statsOf(t, pool)
	out, err := pool.Run(ctx, []*tenure.StateSequence{a}, tenure.Inputs{"x": drawn(t, 1, 1, 2, 1, 4)}, tenure.Watch(func(*ir.Call, time.Duration) { cancel() }))
	out.Release()
	if err == nil || statsOf(t, pool) != before || a.Len() != 8 {
		t.Errorf("a run that ends: got error %v, %+v and %d rows, want %+v and 8", err, statsOf(t, pool), a.Len(), before)
	}
	if err := run(1, a); err != nil {
		t.Errorf("a run after one that ended: got error %v", err)
	}
	limited := poolOf(t, s, 9, 4, tenure.WithLongestSequence(7))
	long := textOf(t, limited)
	_, err = limited.Run(context.Background(), []*tenure.StateSequence{long}, tenure.Inputs{"x": drawn(t, 1, 1, 2, 9, 4)})
	if !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), "9 rows behind 0 of sequence 0, want at most 8") {
		t.Errorf("a sequence that is too long: got error %v, want ErrLimit with the figures", err)
	}
}

// TestPoolPromise decodes in a session that has promised its memory for all
// lengths: no run takes more.
func TestPoolPromise(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool()), tenure.WithThreads(1), tenure.WithUpTo("batch", 3), tenure.WithUpTo("tokens", 4),
		tenure.WithSizes("blocks", 12), tenure.WithSizes("block_rows", 4), tenure.WithSizes("table", 12))
	pool := poolOf(t, s, 12, 4)
	var list []*tenure.StateSequence
	for range 3 {
		list = append(list, textOf(t, pool))
	}
	before := memory.Stats()
	memory.ResetPeak()
	for _, n := range []int{4, 1, 1, 2, 4} {
		out, err := pool.Run(context.Background(), list, tenure.Inputs{"x": drawn(t, 1, len(list), 2, n, 4)})
		if err != nil {
			t.Fatal(err)
		}
		out.Release()
		list = list[:max(1, len(list)-1)]
	}
	now := memory.Stats()
	for _, purpose := range []memory.Purpose{memory.Activations, memory.Scratch} {
		if got, had := now.Of(purpose).Peak, before.Of(purpose).Current; got != had {
			t.Errorf("got a peak of %d bytes of %s, want the %d that were promised", got, purpose, had)
		}
	}
}

// TestPoolMisuse names what is wrong.
func TestPoolMisuse(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, attending, tenure.WithStatePool())
	s := modeltest.Session(t, m)
	pool, other := poolOf(t, s, 4, 4), poolOf(t, s, 4, 4)
	a, b, closed := textOf(t, pool), textOf(t, other), textOf(t, pool)
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Fatal(err)
	}
	x := drawn(t, 1, 1, 2, 1, 4)
	for name, c := range map[string]struct {
		list []*tenure.StateSequence
		in   tenure.Inputs
		kind error
		want string
	}{
		"none":                  {nil, tenure.Inputs{"x": x}, tenure.ErrInput, "no sequences"},
		"closed":                {[]*tenure.StateSequence{closed}, tenure.Inputs{"x": x}, tenure.ErrClosed, "sequence 0"},
		"nil":                   {[]*tenure.StateSequence{a, nil}, tenure.Inputs{"x": x}, tenure.ErrClosed, "sequence 1"},
		"twice":                 {[]*tenure.StateSequence{a, a}, tenure.Inputs{"x": x}, tenure.ErrInput, "sequence 1 is sequence 0 too"},
		"another pool's":        {[]*tenure.StateSequence{a, b}, tenure.Inputs{"x": x}, tenure.ErrInput, "sequence 1 is of another pool"},
		"too many samples":      {[]*tenure.StateSequence{a}, tenure.Inputs{"x": drawn(t, 1, 2, 2, 1, 4)}, tenure.ErrShape, ""},
		"an input of the pool":  {[]*tenure.StateSequence{a}, tenure.Inputs{"x": x, "past_k": x}, tenure.ErrInput, "past_k"},
		"an input that is none": {[]*tenure.StateSequence{a}, tenure.Inputs{"y": x}, tenure.ErrInput, "y"},
	} {
		if _, err := pool.Run(context.Background(), c.list, c.in); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %v and %q", name, err, c.kind, c.want)
		}
	}
	if _, err := closed.Fork(); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("fork of a closed sequence: got error %v, want ErrClosed", err)
	}
	if err := a.Truncate(1); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("truncate to more rows: got error %v, want ErrInput", err)
	}
	if _, err := s.NewStates(4); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), "NewStatePool") {
		t.Errorf("states of a model for pools: got error %v, want ErrInput", err)
	}
	if _, err := modeltest.Session(t, modelOf(t, attending, tenure.WithStates())).NewStatePool(4, 4); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a pool of a model for states: got error %v, want ErrInput", err)
	}
	for _, sizes := range [][2]int{{0, 4}, {4, 0}} {
		if _, err := s.NewStatePool(sizes[0], sizes[1]); !errors.Is(err, tenure.ErrInput) {
			t.Errorf("%d blocks of %d rows: got error %v, want ErrInput", sizes[0], sizes[1], err)
		}
	}
	if err := errors.Join(other.Close(), other.Close(), b.Close()); err != nil {
		t.Error(err)
	}
	if _, err := b.Fork(); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("a sequence of a closed pool: got error %v, want ErrClosed", err)
	}
}

// TestPoolIsBusy refuses calls during a run.
func TestPoolIsBusy(t *testing.T) {
	memorytest.Check(t)
	pool := poolOf(t, modeltest.Session(t, modelOf(t, attending, tenure.WithStatePool())), 4, 4)
	a := textOf(t, pool)
	checked := false
	out, err := pool.Run(context.Background(), []*tenure.StateSequence{a}, tenure.Inputs{"x": drawn(t, 1, 1, 2, 1, 4)}, tenure.Watch(func(*ir.Call, time.Duration) {
		_, forked := a.Fork()
		_, made := pool.NewSequence()
		for _, err := range []error{forked, made, a.Close(), a.Truncate(0), pool.Close()} {
			if !errors.Is(err, tenure.ErrBusy) {
				t.Errorf("got error %v, want ErrBusy", err)
			}
		}
		checked = true
	}))
	if err != nil || !checked {
		t.Fatalf("got error %v, and the calls made: %v", err, checked)
	}
	out.Release()
}

// TestPoolRefusals names the state or the node that keeps a model from using a
// pool.
func TestPoolRefusals(t *testing.T) {
	memorytest.Check(t)
	for name, c := range map[string]struct{ text, want string }{
		"recurrent":   {`func @f(%x: f32[1,4], %h0: f32[1,4]) { %hn = add(%h0, %x) return %x, %hn }`, "(the output has the type of the state)"},
		"no lengths":  {strings.Replace(scattering, "_, _, _, %keys)", "_)", 1), "number of keys"},
		"ring":        {strings.ReplaceAll(scattering, ", %at)", ", %at) {mode = \"circular\"}"), "past_k"},
		"buffer read": {strings.Replace(scattering, "return %y,", "%z = neg(%present_k) return %z,", 1), "neg"},
		"scores":      {strings.NewReplacer("%y, %present_k, %present_v =", "%y, %present_k, %present_v, %s =", "return %y,", "%z = neg(%s) return %y, %z,").Replace(attending), "the scores of"},
		"stacked":     {stackedForms["split and squeeze"].text, "several caches in one"},
		"no batch":    {`func @f(%x: f32[tokens,4], %past: f32[past,4]) { %present = concat(%past, %x) {axis = 0} %y = neg(%present) return %y, %present }`, "axis 0 is that of sequences"},
		"open heads":  {strings.ReplaceAll(attending, "[batch,2,", "[batch,heads,"), "heads"},
		"two lengths": {strings.Replace(attending, "%past_v: f32[batch,2,past,4]", "%past_v: f32[batch,2,other,4]", 1), "past_v"},
	} {
		p, err := ir.Parse(c.text, op.Builtin())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m, err := tenure.LoadProgram(p, nil, tenure.WithStatePool()); err == nil || !strings.Contains(err.Error(), c.want) {
			m.Close()
			t.Errorf("%s: got error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestPoolOfOneLength runs models that read the length of their past, or have a
// mask of its places, where all sequences have one length.
func TestPoolOfOneLength(t *testing.T) {
	memorytest.Check(t)
	sized := strings.Replace(attending, "return %y,", `%size = shape(%past_k) {start = 2, end = 3}
		%n = cast(%size) {to = f32}
		%all = shape(%present_v)
		%wide = cast(%all) {to = f32}
		%most = reduce_max(%wide) {keepdims = 0}
		%m = add(%n, %most)
		%z = add(%y, %m)
		return %z,`, 1)
	masked := strings.Replace(strings.Replace(attending, "%v, _, %past_k", "%v, %mask, %past_k", 1), "(%x: f32[batch,2,tokens,4],", "(%x: f32[batch,2,tokens,4], %mask: f32[tokens,total],", 1)
	for name, text := range map[string]string{"sized": sized, "masked": masked} {
		pool := poolOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStatePool())), 20, 3)
		single := modeltest.Session(t, modelOf(t, text, tenure.WithStates()))
		a, b := textOf(t, pool), textOf(t, pool)
		alone := statesOf(t, single, 60, tenure.WithStateSize("batch", 2))
		inputs := func(samples, n, past int) tenure.Inputs {
			in := tenure.Inputs{"x": drawn(t, uint64(past), samples, 2, n, 4)}
			if name == "masked" {
				in["mask"] = drawn(t, uint64(past+100), n, past+n)
			}
			return in
		}
		for _, n := range []int{4, 1, 2, 1} {
			in := inputs(2, n, a.Len())
			got, err := pool.Run(context.Background(), []*tenure.StateSequence{a, b}, in)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			want, err := alone.Run(context.Background(), in)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for output, x := range want {
				wantNear(t, modeltest.Values(t, got[output]), modeltest.Values(t, x), 1e-5)
			}
			got.Release()
			want.Release()
		}
		if err := b.Truncate(7); err != nil {
			t.Fatal(err)
		}
		_, err := pool.Run(context.Background(), []*tenure.StateSequence{a, b}, inputs(2, 1, 8))
		if want := "got 8 rows of sequence 0 and 7 of sequence 1"; !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want ErrShape and %q", name, err, want)
		}
	}
}

// TestPoolNeedsNoRoom runs sequences of different lengths of a model that
// appends to its cache where that has no room, as GroupQueryAttention does: a
// pool has room, and its length is not read.
func TestPoolNeedsNoRoom(t *testing.T) {
	memorytest.Check(t)
	grown := scattering
	for _, part := range []string{"k", "v"} {
		rows := map[string]string{"k": "x", "v": "v"}[part]
		grown = strings.Replace(grown, "%present_"+part+" = tensor_scatter(%past_"+part, fmt.Sprintf(`%%room_%[1]s = shape(%%past_%[1]s) {start = 2, end = 3}
			%%from_%[1]s = constant() {dtype = i64, dims = [1], ints = [0]}
			%%axis_%[1]s = constant() {dtype = i64, dims = [1], ints = [2]}
			%%more_%[1]s = slice(%%%[2]s, %%from_%[1]s, %%room_%[1]s, %%axis_%[1]s)
			%%all_%[1]s = concat(%%past_%[1]s, %%more_%[1]s) {axis = 2}
			%%present_%[1]s = tensor_scatter(%%all_%[1]s`, part, rows), 1)
	}
	m := modelOf(t, grown, tenure.WithStatePool())
	if slices.ContainsFunc(m.Inputs(), func(i tenure.Info) bool { return i.Name == "states.sizes" }) {
		t.Errorf("got inputs %v, want no length of the past as a size", m.Inputs())
	}
	pool := poolOf(t, modeltest.Session(t, m), 20, 4)
	single := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()))
	texts := []pooledText{{textOf(t, pool), statesOf(t, single, 20)}, {textOf(t, pool), statesOf(t, single, 20)}}
	for i, list := range [][]pooledText{texts[:1], texts, texts[1:], texts} {
		if !runTexts(t, pool, list, scattering, uint64(i), 2+i) {
			t.Fatal("got no room, want some")
		}
	}
}

// TestPoolPlaces refuses rows that the model would write elsewhere than behind
// those that a sequence has.
func TestPoolPlaces(t *testing.T) {
	memorytest.Check(t)
	pool := poolOf(t, modeltest.Session(t, modelOf(t, scattering, tenure.WithStatePool())), 4, 4)
	a := textOf(t, pool)
	for at, want := range map[int64]string{0: "", 1: "got row 1 for sequence 0, want 0", -1: "got row -1 for sequence 0"} {
		out, err := pool.Run(context.Background(), []*tenure.StateSequence{a}, tenure.Inputs{"x": drawn(t, 1, 1, 2, 1, 4), "at": modeltest.Of(t, []int64{at}, 1)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("row %d: got error %v, want %q", at, err, want)
		}
		out.Release()
		if err := a.Truncate(0); err != nil {
			t.Fatal(err)
		}
	}
}

// BenchmarkFork forks a sequence of 4,096 rows and runs a token of the fork: it
// copies one block of each state, where states on their own copy all rows.
func BenchmarkFork(b *testing.B) {
	const rows = 4095
	x, one := drawn(b, 1, 1, 2, rows, 4), drawn(b, 2, 1, 2, 1, 4)
	b.Run("pool", func(b *testing.B) {
		pool := poolOf(b, modeltest.Session(b, modelOf(b, attending, tenure.WithStatePool())), 260, 16)
		q := textOf(b, pool)
		step := func(q *tenure.StateSequence, x *tensor.Tensor) {
			out, err := pool.Run(context.Background(), []*tenure.StateSequence{q}, tenure.Inputs{"x": x})
			if err != nil {
				b.Fatal(err)
			}
			out.Release()
		}
		step(q, x)
		for b.Loop() {
			f, err := q.Fork()
			if err != nil {
				b.Fatal(err)
			}
			step(f, one)
			f.Close()
		}
		b.ReportMetric(float64(statsOf(b, pool).Copied)/float64(b.N), "copied-bytes/op")
	})
	b.Run("states", func(b *testing.B) {
		st := statesOf(b, modeltest.Session(b, modelOf(b, attending, tenure.WithStates())), rows+1)
		runStates(b, st, x)
		for b.Loop() {
			f, err := st.Fork()
			if err != nil {
				b.Fatal(err)
			}
			runStates(b, f, one)
			f.Close()
		}
		b.ReportMetric(float64(2*2*rows*4*4), "copied-bytes/op")
	})
}
