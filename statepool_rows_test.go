package tenure_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// rowForms are models whose calls other than block_attention read the rows of
// their states. All take x, f32[batch,2,tokens,4].
var rowForms = map[string]string{
	"joined heads": joining,
	"rows before heads": `func @f(%x: f32[batch,2,tokens,4], %past_k: f32[batch,past,2,4], %past_v: f32[batch,past,2,4]) {
		%k = transpose(%x) {perm = [0, 2, 1, 3]}
		%v = mul(%k, %k)
		%present_k = concat(%past_k, %k) {axis = 1}
		%present_v = concat(%past_v, %v) {axis = 1}
		%t = transpose(%present_k) {perm = [0, 2, 3, 1]}
		%u = transpose(%present_v) {perm = [0, 2, 1, 3]}
		%scores = matmul(%x, %t)
		%p = softmax(%scores)
		%y = matmul(%p, %u)
		return %y, %present_k, %present_v
	}`,
	"rows last": `func @f(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,4,past], %past_v: f32[batch,2,past,4]) {
		%k = transpose(%x) {perm = [0, 1, 3, 2]}
		%present_k = concat(%past_k, %k) {axis = 3}
		%present_v = concat(%past_v, %x) {axis = 2}
		%scores = matmul(%x, %present_k)
		%p = softmax(%scores)
		%y = matmul(%p, %present_v)
		return %y, %present_k, %present_v
	}`,
	"keys and values in one": `func @f(%x: f32[batch,2,tokens,4], %past: f32[batch,past,12]) {
		%dims = constant() {dtype = i64, dims = [3], ints = [0, 0, -1]}
		%rows = transpose(%x) {perm = [0, 2, 1, 3]}
		%k = reshape(%rows, %dims)
		%sq = mul(%k, %k)
		%s1, %s2 = split(%sq) {axis = 2, num_outputs = 2}
		%kv = concat(%k, %s1) {axis = 2}
		%present = concat(%past, %kv) {axis = 1}
		%parts = constant() {dtype = i64, dims = [2], ints = [8, 4]}
		%keys, %values = split(%present, %parts) {axis = 2}
		%t = transpose(%keys) {perm = [0, 2, 1]}
		%scores = matmul(%k, %t)
		%p = softmax(%scores)
		%y = matmul(%p, %values)
		return %y, %present
	}`,
	"past in a region": `func @f(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,past,4]) {
		%present_k = concat(%past_k, %x) {axis = 2}
		%size = shape(%past_k) {start = 2, end = 3}
		%two = constant() {dtype = i64, dims = [1], ints = [2]}
		%more = greater(%size, %two)
		%axes = constant() {dtype = i64, dims = [1], ints = [2]}
		%flat = squeeze(%more)
		%y = if(%flat) {
			%a = reduce_sum(%past_k, %axes) {keepdims = 1}
			%b = add(%x, %a)
			return %b
		} {
			%c = reduce_sum(%present_k, %axes) {keepdims = 1}
			%d = mul(%x, %c)
			return %d
		}
		return %y, %present_k
	}`,
	"a window of 16 bits": `func @f(%x: f32[batch,2,tokens,4], %past_k: bf16[batch,2,past,4], %past_v: bf16[batch,2,past,4]) {
		%h = cast(%x) {to = bf16}
		%y16, %present_k, %present_v = attention(%h, %h, %h, _, %past_k, %past_v) {is_causal = 1, left_window_size = 2}
		%axes = constant() {dtype = i64, dims = [1], ints = [2]}
		%all = reduce_max(%present_k, %axes) {keepdims = 1}
		%z = add(%y16, %all)
		%y = cast(%z) {to = f32}
		return %y, %present_k, %present_v
	}`,
}

// TestPoolOfRows draws runs, forks, truncations and ends of models that read
// the rows of their states by calls of any kind, and compares each sequence
// with states of its own, bit for bit. Runs of several lengths are refused,
// with the node.
func TestPoolOfRows(t *testing.T) {
	for name, text := range rowForms {
		t.Run(name, func(t *testing.T) {
			memorytest.Check(t)
			for _, rows := range []int{1, 3} {
				poolOfRows(t, text, rows)
			}
		})
	}
}

func poolOfRows(t *testing.T, text string, rows int) {
	const blocks = 60
	r := rand.New(rand.NewPCG(11, uint64(rows)))
	pool := poolOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStatePool())), blocks, rows)
	single := modeltest.Session(t, modelOf(t, text, tenure.WithStates()))
	texts := []pooledText{{textOf(t, pool), statesOf(t, single, blocks*rows)}}
	together, uneven := 0, 0
	for step := range 60 {
		i := r.IntN(len(texts))
		switch which := r.IntN(8); {
		case which < 2 && len(texts) < 4:
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
		case which == 2 && len(texts) > 1:
			if err := errors.Join(texts[i].pooled.Close(), texts[i].alone.Close()); err != nil {
				t.Fatal(err)
			}
			texts = slices.Delete(texts, i, i+1)
		case which == 3 || texts[i].pooled.Len() > 10:
			n := r.IntN(texts[i].pooled.Len() + 1)
			if err := errors.Join(texts[i].pooled.Truncate(n), texts[i].alone.Truncate(n)); err != nil {
				t.Fatal(err)
			}
		default:
			var some, others []pooledText
			for _, x := range texts {
				if x.pooled.Len() == texts[i].pooled.Len() {
					some = append(some, x)
				} else {
					others = append(others, x)
				}
			}
			together += len(some) - 1
			if uneven += len(others); len(others) > 0 {
				in := tenure.Inputs{"x": drawn(t, 1, 2, 2, 1, 4)}
				_, err := pool.Run(context.Background(), []*tenure.StateSequence{some[0].pooled, others[0].pooled}, in)
				if !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), " of the past") {
					t.Fatalf("step %d: got error %v for two lengths, want ErrShape and the call that reads the past", step, err)
				}
			}
			runRows(t, pool, some, uint64(step), 1+r.IntN(3))
		}
	}
	if together == 0 || uneven == 0 {
		t.Fatalf("got %d sequences that ran with others, and %d of other lengths, want some of both", together, uneven)
	}
	for _, x := range texts {
		if err := errors.Join(x.pooled.Close(), x.alone.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if s := statsOf(t, pool); s.Free != blocks {
		t.Errorf("after all sequences were closed: got %d free blocks, want %d", s.Free, blocks)
	}
}

// runRows runs n tokens of each text, in one run of the pool and in a run of
// each of the states.
func runRows(t *testing.T, pool *tenure.StatePool, texts []pooledText, seed uint64, n int) {
	t.Helper()
	x := drawn(t, seed, len(texts), 2, n, 4)
	all := modeltest.Values(t, x)
	var list []*tenure.StateSequence
	for _, x := range texts {
		list = append(list, x.pooled)
	}
	out, err := pool.Run(context.Background(), list, tenure.Inputs{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	got := modeltest.Values(t, out["y"])
	per := len(got) / len(texts)
	for i, x := range texts {
		want := runStates(t, x.alone, modeltest.Of(t, all[8*n*i:][:8*n], 1, 2, n, 4))
		wantNear(t, got[i*per:][:per], want, 0)
		if x.pooled.Len() != x.alone.Len() {
			t.Fatalf("got %d rows, want %d", x.pooled.Len(), x.alone.Len())
		}
	}
}
