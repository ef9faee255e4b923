package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// maskedForms are decoders whose mask has a column per row. other is an input
// of the size that the caller likes.
var maskedForms = map[string]string{
	"added to scores": `func @f(%x: f32[1,2,n,4], %mask: f32[1,1,n,total], %other: f32[frames,1], %past_k: f32[1,2,past,4], %past_v: f32[1,2,past,4]) {
		%front = constant() {dtype = i64, dims = [1], ints = [0]}
		%v = mul(%x, %x)
		%present_k = concat(%past_k, %x) {axis = 2}
		%present_v = concat(%past_v, %v) {axis = 2}
		%t = transpose(%present_k) {perm = [0, 1, 3, 2]}
		%s = matmul(%x, %t)
		%masked = add(%s, %mask)
		%p = softmax(%masked)
		%a = matmul(%p, %present_v)
		%o = reduce_sum(%other, %front)
		%y = add(%a, %o)
		return %y, %present_k, %present_v }`,
	"of attention": `func @f(%x: f32[1,2,n,4], %mask: f32[1,1,n,total], %other: f32[frames,1], %past_k: f32[1,2,past,4], %past_v: f32[1,2,past,4]) {
		%front = constant() {dtype = i64, dims = [1], ints = [0]}
		%v = mul(%x, %x)
		%a, %present_k, %present_v = attention(%x, %x, %v, %mask, %past_k, %past_v)
		%o = reduce_sum(%other, %front)
		%y = add(%a, %o)
		return %y, %present_k, %present_v }`,
	"sliced to the keys": `func @f(%x: f32[1,2,n,4], %mask: f32[1,1,n,total], %other: f32[frames,1], %past_k: f32[1,2,past,4], %past_v: f32[1,2,past,4]) {
		%front = constant() {dtype = i64, dims = [1], ints = [0]}
		%last = constant() {dtype = i64, dims = [1], ints = [3]}
		%v = mul(%x, %x)
		%present_k = concat(%past_k, %x) {axis = 2}
		%present_v = concat(%past_v, %v) {axis = 2}
		%keys = shape(%present_k) {start = 2, end = 3}
		%mine = slice(%mask, %front, %keys, %last)
		%t = transpose(%present_k) {perm = [0, 1, 3, 2]}
		%s = matmul(%x, %t)
		%masked = add(%s, %mine)
		%p = softmax(%masked)
		%a = matmul(%p, %present_v)
		%o = reduce_sum(%other, %front)
		%y = add(%a, %o)
		return %y, %present_k, %present_v }`,
}

// lastOf returns a tensor without all but the last n along axis 2 of [1,a,b,4],
// or the last axis of [1,1,a,b].
func lastOf(t *testing.T, x *tensor.Tensor, axis, n int) *tensor.Tensor {
	t.Helper()
	sizes, values := x.Shape().Sizes(), modeltest.Values(t, x)
	inner := 1
	for _, s := range sizes[axis+1:] {
		inner *= s
	}
	var kept []float32
	for i := 0; i < len(values); i += inner * sizes[axis] {
		kept = append(kept, values[i+inner*(sizes[axis]-n):i+inner*sizes[axis]]...)
	}
	dims := append([]int{}, sizes...)
	dims[axis] = n
	return modeltest.Of(t, kept, dims...)
}

// TestMaskInAWindow passes masks of a column per row to runs that drop rows:
// the columns of these are dropped, too, and nothing else of that size is.
func TestMaskInAWindow(t *testing.T) {
	memorytest.Check(t)
	const capacity, window = 6, 3
	for name, text := range maskedForms {
		st := statesOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStates())), capacity, tenure.WithWindow(window))
		plain := modeltest.Session(t, modelOf(t, text))
		past := []*tensor.Tensor{modeltest.Of(t, []float32{}, 1, 2, 0, 4), modeltest.Of(t, []float32{}, 1, 2, 0, 4)}
		other := drawn(t, 5, capacity+1, 1) // as many as a run of one row has columns that drops others
		slides := 0
		for i, n := range []int{2, 1, 3, 1, 1, 2, 1, 3, 2, 1, 1, 1, 1, 1, 1, 1} {
			x, mask := drawn(t, uint64(i), 1, 2, n, 4), drawn(t, uint64(i+50), 1, 1, n, st.Len()+n)
			in := tenure.Inputs{"x": x, "mask": mask, "other": other}
			if i%2 == 1 {
				f, err := st.Fork()
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				st = f
			}
			if st.Len()+n > capacity {
				slides++
				mask = lastOf(t, mask, 3, window+n)
				for k := range past {
					past[k] = lastOf(t, past[k], 2, window)
				}
			}
			got, err := st.Run(context.Background(), in)
			if err != nil {
				t.Fatalf("%s: run %d: %v", name, i, err)
			}
			want := modeltest.Run(t, plain, tenure.Inputs{"x": x, "mask": mask, "other": other, "past_k": past[0], "past_v": past[1]})
			wantNear(t, modeltest.Values(t, got["y"]), modeltest.Values(t, want["y"]), 1e-5)
			got.Release()
			if past[0], past[1] = want["present_k"], want["present_v"]; st.Len() != past[0].Shape().Size(2) {
				t.Fatalf("%s: run %d: got %d rows, want %s", name, i, st.Len(), past[0].Shape())
			}
			if !mask.Alive() || modeltest.Values(t, in["mask"].Tensor()) == nil {
				t.Fatalf("%s: run %d: the caller's mask is gone", name, i)
			}
		}
		if slides < 3 {
			t.Fatalf("%s: got %d runs that drop rows, want some", name, slides)
		}
	}
}

// TestMaskOfRowsThatAreLeft passes to a run that drops rows the columns of
// those that are left, to an attention, which counts from the first of them.
func TestMaskOfRowsThatAreLeft(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, maskedForms["of attention"], tenure.WithStates())
	var got [][]float32
	for _, columns := range []int{5, 3} {
		st := statesOf(t, modeltest.Session(t, m), 4, tenure.WithWindow(2))
		other, mask := drawn(t, 5, 1, 1), drawn(t, 6, 1, 1, 1, 5)
		for i, in := range []tenure.Inputs{
			{"x": drawn(t, 1, 1, 2, 4, 4), "mask": drawn(t, 2, 1, 1, 4, 4), "other": other},
			{"x": drawn(t, 3, 1, 2, 1, 4), "mask": lastOf(t, mask, 3, columns), "other": other},
		} {
			out, err := st.Run(context.Background(), in)
			if err != nil {
				t.Fatalf("%d columns, run %d: %v", columns, i, err)
			}
			got = append(got, modeltest.Values(t, out["y"]))
			out.Release()
		}
	}
	wantNear(t, got[3], got[1], 0)
}

// TestGivenUpMaskInAWindow refuses a run that drops rows, if its mask, which
// has columns of these, is given up.
func TestGivenUpMaskInAWindow(t *testing.T) {
	memorytest.Check(t)
	st := statesOf(t, modeltest.Session(t, modelOf(t, maskedForms["sliced to the keys"], tenure.WithStates())), 4, tenure.WithWindow(2))
	in := func(n, columns int) tenure.Inputs {
		return tenure.Inputs{"x": drawn(t, 1, 1, 2, n, 4), "mask": drawn(t, 2, 1, 1, n, columns), "other": drawn(t, 5, 1, 1)}
	}
	out, err := st.Run(context.Background(), in(4, 4))
	if err != nil {
		t.Fatal(err)
	}
	out.Release()
	given := in(1, 5)
	given["mask"] = given["mask"].Tensor().Reuse()
	if _, err := st.Run(context.Background(), given); !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), "for 5 rows, of which 2 are dropped") {
		t.Errorf("got error %v, want ErrShape with the figures", err)
	}
	if !given["mask"].Tensor().Alive() {
		t.Error("a refused run has taken the mask")
	}
}

// TestColumnsOfMasks takes masks of a column per row, of fewer, and of one per
// row of the buffer, and refuses others with the figures.
func TestColumnsOfMasks(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, maskedForms["of attention"], tenure.WithStates())
	st := statesOf(t, modeltest.Session(t, m), 8, tenure.WithGrowth(16))
	plain := modeltest.Session(t, modelOf(t, maskedForms["of attention"]))
	past := []*tensor.Tensor{modeltest.Of(t, []float32{}, 1, 2, 0, 4), modeltest.Of(t, []float32{}, 1, 2, 0, 4)}
	other := drawn(t, 5, 1, 1)
	for i, c := range []struct{ n, columns, used int }{{3, 3, 3}, {1, 5, 0}, {1, 9, 0}, {1, 8, 4}, {2, 7, 0}, {2, 6, 6}, {1, 1, 1}, {1, 4, 4}, {1, 9, 9}, {1, 16, 10}} {
		x, mask := drawn(t, uint64(i), 1, 2, c.n, 4), drawn(t, uint64(i+9), 1, 1, c.n, c.columns)
		before := st.Len()
		got, err := st.Run(context.Background(), tenure.Inputs{"x": x, "mask": mask, "other": other})
		if c.used == 0 {
			want := fmt.Sprintf("got a mask of %d columns for %d rows and %d of the run, want at most %d, or %d, the capacity", c.columns, before, c.n, before+c.n, st.Cap())
			if c.columns > st.Cap() {
				want = "" // it is no mask of the buffer
			}
			if !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), want) || st.Len() != before {
				t.Errorf("run %d: got %d rows, error %v, want %d and %q", i, st.Len(), err, before, want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("run %d: %v", i, err)
		}
		values := modeltest.Values(t, mask)
		var first []float32
		for r := range c.n {
			first = append(first, values[r*c.columns:][:c.used]...)
		}
		want := modeltest.Run(t, plain, tenure.Inputs{"x": x, "mask": modeltest.Of(t, first, 1, 1, c.n, c.used), "other": other, "past_k": past[0], "past_v": past[1]})
		wantNear(t, modeltest.Values(t, got["y"]), modeltest.Values(t, want["y"]), 1e-5)
		got.Release()
		past[0], past[1] = want["present_k"], want["present_v"]
	}
}
