package tenure_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// stays checks that no state was copied by the last run, and that buffers are
// where they were if they were anywhere.
func (b *bothWays) stays(t *testing.T) {
	t.Helper()
	if copied, err := b.st.Copied(); err != nil || len(copied) > 0 {
		t.Errorf("got copies %v, %v, want none", copied, err)
	}
}

// TestRollingWindows drops the oldest rows of a window that the graph writes
// down, in the window's bytes: of streams of frames, of several forms.
func TestRollingWindows(t *testing.T) {
	memorytest.Check(t)
	const numbers = `
		%first = constant() {dtype = i64, dims = [1], ints = [START]}
		%end = constant() {dtype = i64, dims = [1], ints = [END]}
		%axis = constant() {dtype = i64, dims = [1], ints = [AXIS]}
		`
	const last = `func @last(%x: f32[B,ROWS,3], %cache: f32[B,6,3]) {` + numbers + `
		%all = concat(%cache, %x) {axis = AXIS}
		%cachen = slice(%all, %first, %end, %axis)
		%y = reduce_sum(%all, %axis)
		return %y, %cachen }`
	const tail = `func @tail(%x: f32[B,ROWS,3], %cache: f32[B,6,3]) {` + numbers + `
		%old = slice(%cache, %first, %end, %axis)
		%cachen = concat(%old, %x) {axis = AXIS}
		%y = mul(%cachen, %cachen)
		return %y, %cachen }`
	cases := []struct {
		text, dims, rows, start, end, axis string
		n                                  []int
		copied                             bool
	}{
		{text: last, dims: "1,", rows: "2", start: "-6", end: "9223372036854775807", axis: "1", n: []int{2, 2, 2, 2}},
		{text: last, dims: "2,", rows: "n", start: "-6", end: "2147483647", axis: "-2", n: []int{1, 4, 6, 9, 2}},
		{text: last, dims: "", rows: "n", start: "-6", end: "9223372036854775807", axis: "0", n: []int{1, 7, 2}},
		{text: tail, dims: "3,", rows: "1", start: "1", end: "9223372036854775807", axis: "1", n: []int{1, 1, 1, 1, 1, 1, 1}},
		{text: tail, dims: "3,", rows: "2", start: "2", end: "6", axis: "1", n: []int{2, 2, 2, 2}},
		{text: tail, dims: "", rows: "5", start: "5", end: "6", axis: "0", n: []int{5, 5}},
		// No windows: rows in the middle, and the first ones.
		{text: last, dims: "1,", rows: "2", start: "1", end: "7", axis: "1", n: []int{2, 2}, copied: true},
		{text: last, dims: "1,", rows: "2", start: "-8", end: "6", axis: "1", n: []int{2, 2}, copied: true},
	}
	for i, c := range cases {
		text := strings.NewReplacer("B,", c.dims, "ROWS", c.rows, "START", c.start, "END", c.end, "AXIS", c.axis).Replace(c.text)
		var front []int
		for _, d := range strings.Split(strings.TrimSuffix(c.dims, ","), ",") {
			if d != "" {
				front = append(front, int(d[0]-'0'))
			}
		}
		dims := func(n int) []int { return append(append([]int{}, front...), n, 3) }
		size := 18
		for _, d := range front {
			size *= d
		}
		b := newBothWays(t, text, 1, tenure.Inputs{"cache": modeltest.Of(t, make([]float32, size), dims(6)...)})
		if kind := b.pairs[0].Kind; kind != tenure.StateSame {
			t.Errorf("case %d: got %s, want %s", i, b.pairs[0], tenure.StateSame)
		}
		for k, n := range c.n {
			if err := b.run(t, tenure.Inputs{"x": drawn(t, uint64(k), dims(n)...)}); err != nil {
				t.Fatalf("case %d, run %d: %v", i, k, err)
			}
		}
		if !c.copied {
			b.stays(t)
		} else if copied, err := b.st.Copied(); err != nil || len(copied) != 1 {
			t.Errorf("case %d: got copies %v, %v, want the state", i, copied, err)
		}
	}
}

// stackedForms are decoders of two layers, or one with keys and values, whose
// caches are one tensor.
var stackedForms = map[string]struct {
	text string
	dims []int // of the state without rows
	axis int
}{
	"gather and unsqueeze": {`func @f(%x: f32[1,2,n,4], %past: f32[2,2,1,2,past,4]) {
		%zero = constant() {dtype = i64, ints = [0]}
		%one = constant() {dtype = i64, ints = [1]}
		%front = constant() {dtype = i64, dims = [1], ints = [0]}
		%l0 = gather(%past, %zero) {axis = 0}
		%l1 = gather(%past, %one) {axis = 0}
		%k0 = gather(%l0, %zero) {axis = 0}
		%v0 = gather(%l0, %one) {axis = 0}
		%k1 = gather(%l1, %zero) {axis = 0}
		%v1 = gather(%l1, %one) {axis = 0}
		%nk0 = concat(%k0, %x) {axis = 2}
		%x2 = mul(%x, %x)
		%nv0 = concat(%v0, %x2) {axis = -2}
		%t0 = transpose(%nk0) {perm = [0, 1, 3, 2]}
		%s0 = matmul(%x, %t0)
		%p0 = softmax(%s0)
		%y0 = matmul(%p0, %nv0)
		%nk1 = concat(%k1, %y0) {axis = 2}
		%nv1 = concat(%v1, %x) {axis = 2}
		%t1 = transpose(%nk1) {perm = [0, 1, 3, 2]}
		%s1 = matmul(%y0, %t1)
		%p1 = softmax(%s1)
		%y = matmul(%p1, %nv1)
		%uk0 = unsqueeze(%nk0, %front)
		%uv0 = unsqueeze(%nv0, %front)
		%uk1 = unsqueeze(%nk1, %front)
		%uv1 = unsqueeze(%nv1, %front)
		%j0 = concat(%uk0, %uv0) {axis = 0}
		%j1 = concat(%uk1, %uv1) {axis = 0}
		%uj0 = unsqueeze(%j0, %front)
		%uj1 = unsqueeze(%j1, %front)
		%present = concat(%uj0, %uj1) {axis = 0}
		return %y, %present }`, []int{2, 2, 1, 2, 0, 4}, 4},
	"split and squeeze": {`func @f(%x: f32[1,2,n,4], %past: f32[2,1,2,past,4]) {
		%front = constant() {dtype = i64, dims = [1], ints = [0]}
		%ka, %va = split(%past) {axis = 0, num_outputs = 2}
		%k = squeeze(%ka, %front)
		%v = squeeze(%va, %front)
		%size = shape(%k) {start = 2, end = 3}
		%count = cast(%size) {to = f32}
		%nk = concat(%k, %x) {axis = 2}
		%z = add(%x, %count)
		%nv = concat(%v, %z) {axis = 2}
		%t = transpose(%nk) {perm = [0, 1, 3, 2]}
		%s = matmul(%x, %t)
		%p = softmax(%s)
		%y = matmul(%p, %nv)
		%uk = unsqueeze(%nk, %front)
		%uv = unsqueeze(%nv, %front)
		%present = concat(%uk, %uv) {axis = 0}
		return %y, %present }`, []int{2, 1, 2, 0, 4}, 3},
	"slices without a batch": {`func @f(%x: f32[1,n,4], %past: f32[2,past,4]) {
		%i0 = constant() {dtype = i64, dims = [1], ints = [0]}
		%i1 = constant() {dtype = i64, dims = [1], ints = [1]}
		%i2 = constant() {dtype = i64, dims = [1], ints = [2]}
		%a = slice(%past, %i0, %i1, %i0)
		%b = slice(%past, %i1, %i2, %i0)
		%na = concat(%a, %x) {axis = 1}
		%x2 = mul(%x, %x)
		%nb = concat(%b, %x2) {axis = 1}
		%m = mul(%na, %nb)
		%y = reduce_sum(%m, %i1)
		%present = concat(%na, %nb) {axis = 0}
		return %y, %present }`, []int{2, 0, 4}, 1},
}

// TestStackedStates appends to each part of a stacked state where it lies.
func TestStackedStates(t *testing.T) {
	memorytest.Check(t)
	for name, c := range stackedForms {
		b := newBothWays(t, c.text, 4, tenure.Inputs{"past": modeltest.Of(t, []float32{}, c.dims...)}, tenure.WithGrowth(64))
		if info := b.pairs[0]; info.Kind != tenure.StateAppended || info.Axis != c.axis {
			t.Fatalf("%s: got %s, want a state that is appended along axis %d", name, info, c.axis)
		}
		in := func(seed uint64, n int) tenure.Inputs {
			if len(c.dims) == 3 {
				return tenure.Inputs{"x": drawn(t, seed, 1, n, 4)}
			}
			return tenure.Inputs{"x": drawn(t, seed, 1, 2, n, 4)}
		}
		for i, n := range []int{3, 1, 2, 1, 5, 1} {
			if err := b.run(t, in(uint64(i), n)); err != nil {
				t.Fatalf("%s: run %d: %v", name, i, err)
			}
			b.stays(t)
		}
		for how, end := range endings {
			for after := range callsOf(t, b.st, in(7, 2)) - 1 {
				before := b.st.Len()
				switch err := end(b.st, in(8, 2), after); {
				case err == nil && after > 0: // the calls that are left join parts that lie in place: nothing stops there
					if err := b.st.Truncate(before); err != nil {
						t.Fatal(err)
					}
				case !errors.Is(err, errEnded) || errors.Is(err, tenure.ErrPartlyWritten) || b.st.Len() != before:
					t.Fatalf("%s, %s behind call %d: got error %v, want that nothing is lost", name, how, after, err)
				}
				if err := b.run(t, in(uint64(after), 1)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestStacksThatChange leaves states whose parts change places, or of which
// only some grow, as they were: what the model says comes out.
func TestStacksThatChange(t *testing.T) {
	memorytest.Check(t)
	const swapped = `func @f(%x: f32[1,n,4], %past: f32[2,past,4]) {
		%i0 = constant() {dtype = i64, dims = [1], ints = [0]}
		%i1 = constant() {dtype = i64, dims = [1], ints = [1]}
		%i2 = constant() {dtype = i64, dims = [1], ints = [2]}
		%a = slice(%past, %i0, %i1, %i0)
		%b = slice(%past, %i1, %i2, %i0)
		%na = concat(%a, %x) {axis = 1}
		%nb = concat(%b, %x) {axis = 1}
		%y = reduce_sum(%na, %i1)
		%present = concat(%nb, %na) {axis = 0}
		return %y, %present }`
	b := newBothWays(t, swapped, 4, tenure.Inputs{"past": modeltest.Of(t, []float32{}, 2, 0, 4)}, tenure.WithGrowth(64))
	for i, n := range []int{2, 1, 1, 3} {
		if err := b.run(t, tenure.Inputs{"x": drawn(t, uint64(i), 1, n, 4)}); err != nil {
			t.Fatal(err)
		}
	}
	x := drawn(t, 9, 1, 1, 4)
	for after := range callsOf(t, b.st, tenure.Inputs{"x": x}) - 1 {
		before := b.st.Len()
		switch err := endings["a panic"](b.st, tenure.Inputs{"x": x}, after); {
		case !errors.Is(err, errEnded) && !errors.Is(err, tenure.ErrPartlyWritten):
			t.Fatalf("behind call %d: got error %v, want the cause", after, err)
		case b.st.Len() != before:
			t.Fatalf("behind call %d: got %d rows, want %d", after, b.st.Len(), before)
		}
		if err := b.run(t, tenure.Inputs{"x": x}); errors.Is(err, tenure.ErrPartlyWritten) {
			if err := b.st.Set(map[string]*tensor.Tensor{"past": b.past["past"].(*tensor.Tensor)}); err != nil {
				t.Fatal(err)
			}
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWindowIsOneBuffer runs a stream with a large window: a run takes no
// second buffer for it.
func TestWindowIsOneBuffer(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, `func @f(%x: f32[1,1,1024], %cache: f32[1,64,1024]) {
		%one = constant() {dtype = i64, dims = [1], ints = [1]}
		%end = constant() {dtype = i64, dims = [1], ints = [9223372036854775807]}
		%old = slice(%cache, %one, %end, %one)
		%cachen = concat(%old, %x) {axis = 1}
		%y = reduce_sum(%cachen, %one)
		return %y, %cachen }`, tenure.WithStates()), tenure.WithThreads(1))
	st := statesOf(t, s, 1)
	x := drawn(t, 1, 1, 1, 1024)
	runStates(t, st, x)
	peak := peakOf(t, st, x)
	if most := int64(16 << 10); peak > most {
		t.Errorf("got %d bytes more at the peak of a run, want at most %d: the window has %d", peak, most, st.Bytes())
	}
}

// peakOf returns how many bytes a run takes beside those that are there.
func peakOf(t *testing.T, st *tenure.States, x *tensor.Tensor) int64 {
	t.Helper()
	before := memory.Stats().Total.Current
	memory.ResetPeak()
	runStates(t, st, x)
	return memory.Stats().Total.Peak - before
}
