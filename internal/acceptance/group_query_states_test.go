package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestGroupQueryStates keeps the caches of a GroupQueryAttention in buffers, in
// which the node itself says where to write: one plan serves all lengths, and
// the outputs are those of caches that grow.
func TestGroupQueryStates(t *testing.T) {
	memorytest.Check(t)
	file := groupQueryFile(false, true)
	pairs := tenure.WithStates(tenure.StatePair{Input: "past_keys", Output: "keys"}, tenure.StatePair{Input: "past_values", Output: "values"})
	m := modeltest.LoadBytes(t, file, pairs)
	for _, info := range m.States() {
		if info.Kind != tenure.StateWritten || info.Axis != 2 {
			t.Errorf("got %s, want a state that is written along axis 2", info)
		}
	}
	s, plain := modeltest.Session(t, m), modeltest.Session(t, modeltest.LoadBytes(t, file))
	st, err := s.NewStates(mostTokens)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	grown := begin(t, plain, 1, 0)
	plans := int64(0)
	for place := range mostTokens {
		in := tenure.Inputs{"x": modeltest.Of(t, tokenRow(0, place), 1, 1, tokenWidth), "last": modeltest.Of(t, []int32{int32(place)}, 1), "total": modeltest.Of(t, []int32{int32(place + 1)})}
		out, err := st.Run(context.Background(), in)
		if err != nil {
			t.Fatalf("token %d: %v", place, err)
		}
		in["past_keys"], in["past_values"] = grown.keys, grown.values
		want := modeltest.Run(t, plain, in)
		if why := modeltest.Differs(out["y"], want["y"], modeltest.Tolerance{ATol: 1e-6, RTol: 1e-5}); why != "" {
			t.Errorf("token %d: %s", place, why)
		}
		grown.keys, grown.values = want["keys"], want["values"]
		if err := out.Release(); err != nil {
			t.Error(err)
		}
		switch copied, err := st.Copied(); {
		case err != nil || len(copied) > 0:
			t.Fatalf("token %d: got copies %v, %v, want none", place, copied, err)
		case place == 0:
			plans = s.Stats().Compiled
		case s.Stats().Compiled != plans:
			t.Fatalf("token %d: got %d plans, want one for all lengths", place, s.Stats().Compiled)
		}
	}
	if st.Len() != mostTokens {
		t.Errorf("got %d rows, want %d", st.Len(), mostTokens)
	}
}

// TestGroupQueryPool runs sequences of different lengths together, with the
// keys and values of a GroupQueryAttention in blocks: its own reads of the
// past's size, which make room in a cache that is full, ask for no common
// length.
func TestGroupQueryPool(t *testing.T) {
	memorytest.Check(t)
	file := groupQueryFile(false, true)
	states := []tenure.StatePair{{Input: "past_keys", Output: "keys"}, {Input: "past_values", Output: "values"}}
	s := modeltest.Session(t, modeltest.LoadBytes(t, file, tenure.WithStatePool(states...)))
	single := modeltest.Session(t, modeltest.LoadBytes(t, file, tenure.WithStates(states...)))
	pool, err := s.NewStatePool(12, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var list []*tenure.StateSequence
	var alone []*tenure.States
	plans := int64(0)
	for place := range 6 {
		if len(list) < 2 { // sequence 1 begins one token later
			q, err := pool.NewSequence()
			if err != nil {
				t.Fatal(err)
			}
			st, err := single.NewStates(mostTokens)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			list, alone = append(list, q), append(alone, st)
		}
		var rows, want []float32
		var last []int32
		for i, st := range alone {
			row, at := tokenRow(i, place), int32(st.Len())
			rows, last = append(rows, row...), append(last, at)
			out, err := st.Run(context.Background(), tenure.Inputs{"x": modeltest.Of(t, row, 1, 1, tokenWidth), "last": modeltest.Of(t, []int32{at}, 1), "total": modeltest.Of(t, []int32{at + 1})})
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, modeltest.Values(t, out["y"])...)
			if err := out.Release(); err != nil {
				t.Error(err)
			}
		}
		total := modeltest.Of(t, []int32{slices.Max(last) + 1})
		out, err := pool.Run(context.Background(), list, tenure.Inputs{"x": modeltest.Of(t, rows, len(list), 1, tokenWidth), "last": modeltest.Of(t, last, len(list)), "total": total})
		if err != nil {
			t.Fatalf("token %d: %v", place, err)
		}
		if why := modeltest.Differs(out["y"], modeltest.Of(t, want, len(list), 1, len(want)/len(list)), modeltest.Tolerance{ATol: 1e-6, RTol: 1e-5}); why != "" {
			t.Errorf("token %d: %s", place, why)
		}
		if err := out.Release(); err != nil {
			t.Error(err)
		}
		if place == 1 {
			plans = s.Stats().Compiled
		}
	}
	if got := s.Stats().Compiled; got != plans || list[0].Len() != 6 || list[1].Len() != 5 {
		t.Errorf("got %d plans, %d and %d rows, want %d, 6 and 5", got, list[0].Len(), list[1].Len(), plans)
	}
}

// TestGroupQueryWindow drops no rows of caches in which the node says where to
// write: a run without room is refused, and one that Truncate made room for is
// that of caches that grow.
func TestGroupQueryWindow(t *testing.T) {
	memorytest.Check(t)
	file := groupQueryFile(true, true)
	pairs := tenure.WithStates(tenure.StatePair{Input: "past_keys", Output: "keys"}, tenure.StatePair{Input: "past_values", Output: "values"})
	s, plain := modeltest.Session(t, modeltest.LoadBytes(t, file, pairs)), modeltest.Session(t, modeltest.LoadBytes(t, file))
	st, err := s.NewStates(4, tenure.WithWindow(2))
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	in := func(place int) tenure.Inputs {
		return tenure.Inputs{"x": modeltest.Of(t, tokenRow(0, place), 1, 1, tokenWidth), "mask": modeltest.Of(t, slices.Repeat([]int64{1}, place+1), 1, place+1)}
	}
	var wants []*tensor.Tensor
	grown := begin(t, plain, 1, 0)
	for place := range 4 {
		out, err := st.Run(context.Background(), in(place))
		if err != nil {
			t.Fatalf("token %d: %v", place, err)
		}
		given := in(place)
		given["past_keys"], given["past_values"] = grown.keys, grown.values
		want := modeltest.Run(t, plain, given)
		wants, grown.keys, grown.values = append(wants, want["y"]), want["keys"], want["values"]
		if why := modeltest.Differs(out["y"], want["y"], modeltest.Tolerance{ATol: 1e-6, RTol: 1e-5}); why != "" {
			t.Errorf("token %d: %s", place, why)
		}
		if err := out.Release(); err != nil {
			t.Error(err)
		}
	}
	if _, err := st.Run(context.Background(), in(4)); !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), "got 1 rows behind 4, want at most 4 in all") || st.Len() != 4 {
		t.Fatalf("a run without room: got %d rows, error %v, want 4 and ErrLimit with the figures", st.Len(), err)
	}
	if err := st.Truncate(3); err != nil {
		t.Fatal(err)
	}
	out, err := st.Run(context.Background(), in(3))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if why := modeltest.Differs(out["y"], wants[3], modeltest.Tolerance{ATol: 1e-6, RTol: 1e-5}); why != "" {
		t.Errorf("the last token again: %s", why)
	}
}
