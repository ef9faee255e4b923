package tenure_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// merged is a decoder with an encoder, as exporters merge those with a past and
// without: HELD is what the region with a past returns for the keys and values
// of the encoder.
const merged = `func @merged(%x: f32[batch,2,tokens,4], %enc: f32[batch,2,frames,4], %use_cache: bool[1], %past_k: f32[batch,2,past,4], %past_v: f32[batch,2,past,4],
		%past_ek: f32[batch,2,frames_out,4], %past_ev: f32[batch,2,frames_out,4]) {
	%perm = mul(%x, %x)
	%y, %present_k, %present_v, %present_ek, %present_ev = if(%use_cache) {
		%k = concat(%past_k, %x) {axis = 2}
		%v = concat(%past_v, %perm) {axis = 2}
		%t = transpose(%k) {perm = [0, 1, 3, 2]}
		%scores = matmul(%x, %t)
		%p = softmax(%scores)
		%a = matmul(%p, %v)
		%et = transpose(%past_ek) {perm = [0, 1, 3, 2]}
		%es = matmul(%a, %et)
		%ep = softmax(%es)
		%y1 = matmul(%ep, %past_ev)
		HELD
	} {
		%v2 = mul(%x, %x)
		%t2 = transpose(%x) {perm = [0, 1, 3, 2]}
		%scores2 = matmul(%x, %t2)
		%p2 = softmax(%scores2)
		%a2 = matmul(%p2, %v2)
		%ek = mul(%enc, %enc)
		%ev = neg(%enc)
		%et2 = transpose(%ek) {perm = [0, 1, 3, 2]}
		%es2 = matmul(%a2, %et2)
		%ep2 = softmax(%es2)
		%y2 = matmul(%ep2, %ev)
		return %y2, %x, %v2, %ek, %ev
	}
	return %y, %present_k, %present_v, %present_ek, %present_ev
}`

var heldForms = map[string]string{
	"as they are": "return %y1, %k, %v, %past_ek, %past_ev",
	"dummies": `%none = constant() {dtype = f32, dims = [0, 2, 1, 4]}
		return %y1, %k, %v, %none, %none`,
}

// mergedPlain runs a merged decoder without states.
type mergedPlain struct {
	s    *tenure.Session
	past tenure.Inputs
}

func (m *mergedPlain) run(t *testing.T, x, enc *tensor.Tensor) []float32 {
	t.Helper()
	in := tenure.Inputs{"x": x, "enc": enc, "use_cache": modeltest.Of(t, []bool{m.past != nil}, 1)}
	if m.past == nil {
		none, one := modeltest.Of(t, []float32{}, 1, 2, 0, 4), modeltest.Of(t, make([]float32, 8), 1, 2, 1, 4)
		m.past = tenure.Inputs{"past_k": none, "past_v": none, "past_ek": one, "past_ev": one}
	}
	for name, o := range m.past {
		in[name] = o
	}
	out := modeltest.Run(t, m.s, in)
	for name := range m.past {
		if x := out[strings.Replace(name, "past", "present", 1)]; x.NumBytes() > 0 {
			m.past[name] = x
		}
	}
	return modeltest.Values(t, out["y"])
}

// TestMergedDecoder appends rows in both regions of a branch, in place, and
// keeps the keys and values of the encoder where they are.
func TestMergedDecoder(t *testing.T) {
	memorytest.Check(t)
	for name, held := range heldForms {
		text := strings.Replace(merged, "HELD", held, 1)
		m := modelOf(t, text, tenure.WithStates())
		for i, info := range m.States() {
			if want := []tenure.StateKind{tenure.StateAppended, tenure.StateAppended, tenure.StateHeld, tenure.StateHeld}[i]; info.Kind != want {
				t.Fatalf("%s: got %s, want %s", name, info, want)
			}
		}
		st := statesOf(t, modeltest.Session(t, m), 4, tenure.WithGrowth(64))
		plainModel := modelOf(t, strings.Replace(merged, "HELD", heldForms["as they are"], 1))
		plain := &mergedPlain{s: modeltest.Session(t, plainModel)}
		enc := drawn(t, 77, 1, 2, 9, 4)
		run := func(st *tenure.States, seed uint64, n int, enc *tensor.Tensor) []float32 {
			t.Helper()
			out, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, seed, 1, 2, n, 4), "enc": enc})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			defer out.Release()
			if len(out) != 1 {
				t.Fatalf("%s: got outputs %v, want y alone", name, out)
			}
			return modeltest.Values(t, out["y"])
		}
		for i, n := range []int{3, 1, 1, 2, 1, 5, 1} {
			wantNear(t, run(st, uint64(i), n, enc), plain.run(t, drawn(t, uint64(i), 1, 2, n, 4), enc), 1e-5)
			if copied, err := st.Copied(); err != nil || len(copied) > 0 {
				t.Errorf("%s: run %d: got copies %v, %v, want none", name, i, copied, err)
			}
		}
		if st.Len() != 14 {
			t.Errorf("%s: got %d rows, want 14", name, st.Len())
		}
		for how, end := range endings {
			in := tenure.Inputs{"x": drawn(t, 50, 1, 2, 2, 4), "enc": enc}
			for after := range callsOf(t, st, in) - 1 {
				if err := end(st, in, after); !errors.Is(err, errEnded) || errors.Is(err, tenure.ErrPartlyWritten) || st.Len() != 14 {
					t.Fatalf("%s: %s behind call %d: got %d rows, error %v, want that nothing is lost", name, how, after, st.Len(), err)
				}
			}
		}
		file := filepath.Join(t.TempDir(), "states")
		fork, err := st.Fork()
		if err != nil {
			t.Fatal(err)
		}
		defer fork.Close()
		loaded := statesOf(t, modeltest.Session(t, m), 32)
		if err := errors.Join(st.Save(file), loaded.Load(file), st.Truncate(14)); err != nil {
			t.Fatal(err)
		}
		run(st, 90, 2, enc)
		if err := st.Truncate(14); err != nil {
			t.Fatal(err)
		}
		want := plain.run(t, drawn(t, 91, 1, 2, 1, 4), enc)
		for _, st := range []*tenure.States{st, fork, loaded} {
			wantNear(t, run(st, 91, 1, enc), want, 1e-5)
		}
		other := drawn(t, 78, 1, 2, 5, 4)
		if err := st.Reset(); err != nil {
			t.Fatal(err)
		}
		again := &mergedPlain{s: plain.s}
		for i, n := range []int{2, 1} {
			wantNear(t, run(st, uint64(i), n, other), again.run(t, drawn(t, uint64(i), 1, 2, n, 4), other), 1e-5)
		}
		for _, past := range []bool{false, true} {
			out, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, 1, 1, 2, 1, 4), "enc": enc, "use_cache": modeltest.Of(t, []bool{past}, 1)})
			if !past && (!errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), "got false for states with 3 rows, want true")) || past && err != nil {
				t.Errorf("%s: the caller chooses %v: got error %v", name, past, err)
			}
			out.Release()
		}
	}
}

// TestHeldStatesAreNotCopied runs with much more of the encoder than of the
// decoder: the run takes less than one of the encoder's states.
func TestHeldStatesAreNotCopied(t *testing.T) {
	memorytest.Check(t)
	for name, held := range heldForms {
		s := modeltest.Session(t, modelOf(t, strings.Replace(merged, "HELD", held, 1), tenure.WithStates()), tenure.WithThreads(1))
		st := statesOf(t, s, 8)
		enc := drawn(t, 1, 1, 2, 8192, 4)
		var peak int64
		for i := range 3 {
			before := memory.Stats().Total.Current
			memory.ResetPeak()
			out, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, uint64(i), 1, 2, 1, 4), "enc": enc})
			if err != nil {
				t.Fatal(err)
			}
			peak = memory.Stats().Total.Peak - before
			out.Release()
		}
		if most := st.Bytes() / 4; peak > most {
			t.Errorf("%s: got %d bytes more at the peak of a run, want at most %d of states of %d", name, peak, most, st.Bytes())
		}
	}
}

// TestBranchesWithoutAPast leaves branches as they are whose condition is
// computed, or whose result others read, and says why.
func TestBranchesWithoutAPast(t *testing.T) {
	memorytest.Check(t)
	const text = `func @f(%x: f32[1,n,4], %c: COND, %past: f32[1,m,4]) {
		%axis = constant() {dtype = i64, dims = [1], ints = [1]}
		BEFORE
		%present = if(%go) {
			%a = concat(%past, %x) {axis = 1}
			return %a
		} {
			REGION
		}
		%y = neg(%READ)
		return %y, %present }`
	for why, with := range map[string][]string{
		"is no input":       {"COND", "i64[]", "BEFORE", "%go = cast(%c) {to = bool}", "REGION", "return %x", "READ", "x"},
		"is read by others": {"COND", "bool[]", "BEFORE", "", "%go", "%c", "REGION", "return %x", "READ", "present"},
		"a branch returns it, to which no rows are appended": {"COND", "bool[]", "BEFORE", "", "%go", "%c", "REGION", "%b = concat(%x, %past) {axis = 1} return %past", "READ", "x"},
	} {
		m := modelOf(t, strings.NewReplacer(with...).Replace(text), tenure.WithStates())
		if info := m.States()[0]; info.Kind != tenure.StateReplaced || !strings.Contains(info.Why, why) {
			t.Errorf("got %s, want a state that is replaced because %s", info, why)
		}
	}
}
