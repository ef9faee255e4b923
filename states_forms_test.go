package tenure_test

import (
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
