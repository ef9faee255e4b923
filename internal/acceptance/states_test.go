package acceptance

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestRowsStayWhereTheyAre plans one token and four, behind 20 others, for the
// graph of a decoder that joins its caches by Concat and reads them by
// products: each cache is written in the bytes of its input, and read there.
func TestRowsStayWhereTheyAre(t *testing.T) {
	dir := modeltest.SharedDir(t, "models/gpt2_tiny")
	memorytest.Check(t)
	m := modeltest.Load(t, filepath.Join(dir, "model.onnx"), tenure.WithStates())
	for _, tokens := range []int{1, 4} {
		shapes := tenure.Shapes{"input_ids": {1, tokens}, "attention_mask": {1, 20 + tokens}, "states.length": {1}, "states.sizes": {20, 0}}
		var given []string
		for _, s := range m.States() {
			shapes[s.Input], given = []int{1, 4, 64, 24}, append(given, s.Input)
		}
		p, err := m.Plan(context.Background(), shapes, tenure.WithDonated(given...), tenure.WithThreads(1))
		if err != nil {
			t.Fatal(err)
		}
		in := map[string]string{}
		for _, at := range p.InPlace {
			in[at.Value+" in "+at.Of] = string(at.Kind)
		}
		for _, s := range m.States() {
			if got := in[s.Output+".buffer in "+s.Input]; got != "update" {
				t.Errorf("%d tokens: %s is written into %s as %q, want an update", tokens, s.Output, s.Input, got)
			}
			if got := in[s.Output+" in "+s.Output+".buffer"]; got != "view" {
				t.Errorf("%d tokens: the rows of %s are %q of the buffer, want a view", tokens, s.Output, got)
			}
		}
	}
}

// TestDecoderWithStates runs the data of a decoder's chained runs, a prompt and
// three tokens, with caches that stay in buffers.
func TestDecoderWithStates(t *testing.T) {
	dir := modeltest.SharedDir(t, "models/gpt2_tiny")
	memorytest.Check(t)
	m := modeltest.Load(t, filepath.Join(dir, "model.onnx"), tenure.WithStates())
	if got := len(m.States()); got != 6 {
		t.Fatalf("got %d states, want 6", got)
	}
	st, err := modeltest.Session(t, m).NewStates(16)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	rows := 0
	for set := range 4 {
		data := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", set))
		read := func(name string) *tensor.Tensor { return modeltest.ReadTensor(t, filepath.Join(data, name)) }
		ids, mask, want := read("input_0.pb"), read("input_1.pb"), read("output_0.pb")
		out, err := st.Run(context.Background(), tenure.Inputs{"input_ids": ids, "attention_mask": mask})
		if err != nil {
			t.Fatalf("set %d: %v", set, err)
		}
		if why := modeltest.Differs(out["logits"], want, modeltest.Tolerance{RTol: 1e-4, ATol: 1e-4}); why != "" {
			t.Errorf("set %d: logits: %s", set, why)
		}
		if rows += ids.Shape().Size(1); st.Len() != rows {
			t.Errorf("set %d: got %d rows, want %d", set, st.Len(), rows)
		}
		if copied, err := st.Copied(); err != nil || len(copied) > 0 {
			t.Errorf("set %d: got copies %v, %v, want none", set, copied, err)
		}
		if err := errors.Join(out.Release(), ids.Release(), mask.Release(), want.Release()); err != nil {
			t.Error(err)
		}
	}
}

// TestDecoderInPool runs the data of a decoder's chained runs in a pool, as a
// sequence and its fork, whose runs are together: the decoder joins its caches
// by Concat and reads them by products. Sequences of two lengths are refused.
func TestDecoderInPool(t *testing.T) {
	dir := modeltest.SharedDir(t, "models/gpt2_tiny")
	memorytest.Check(t)
	m := modeltest.Load(t, filepath.Join(dir, "model.onnx"), tenure.WithStatePool())
	pool, err := modeltest.Session(t, m).NewStatePool(20, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	var list []*tenure.StateSequence
	for range 2 {
		q, err := pool.NewSequence()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, q)
	}
	twice := func(x *tensor.Tensor) *tensor.Tensor {
		r, err := tensor.Read[int64](x)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Release()
		return modeltest.Of(t, slices.Concat(r.Data, r.Data), 2, x.Shape().Size(1))
	}
	for set := range 4 {
		data := filepath.Join(dir, fmt.Sprintf("test_data_set_%d", set))
		read := func(name string) *tensor.Tensor { return modeltest.ReadTensor(t, filepath.Join(data, name)) }
		ids, mask, want := read("input_0.pb"), read("input_1.pb"), read("output_0.pb")
		both := tenure.Inputs{"input_ids": twice(ids), "attention_mask": twice(mask)}
		out, err := pool.Run(context.Background(), list, both)
		if err != nil {
			t.Fatalf("set %d: %v", set, err)
		}
		expected, got := modeltest.Values(t, want), modeltest.Values(t, out["logits"])
		for i := range got {
			if x, y := float64(got[i]), float64(expected[i%len(expected)]); math.Abs(x-y) > 1e-4+1e-4*math.Abs(y) {
				t.Fatalf("set %d: logit %d: got %v, want %v", set, i, x, y)
			}
		}
		if err := errors.Join(out.Release(), ids.Release(), mask.Release(), want.Release()); err != nil {
			t.Error(err)
		}
	}
	if err := list[1].Truncate(list[1].Len() - 1); err != nil {
		t.Fatal(err)
	}
	ids, mask := modeltest.Of(t, []int64{1, 1}, 2, 1), modeltest.Of(t, make([]int64, 2*(list[0].Len()+1)), 2, list[0].Len()+1)
	if _, err := pool.Run(context.Background(), list, tenure.Inputs{"input_ids": ids, "attention_mask": mask}); !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), "of the past") {
		t.Errorf("two lengths: got error %v, want ErrShape", err)
	}
}
