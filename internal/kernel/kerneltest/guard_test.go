package kerneltest

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

// recorder is a test that can fail without failing.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(r)
}

// failureOf runs a check and returns its complaint.
func failureOf(check func(t testing.TB)) (failure string) {
	r := &recorder{}
	defer func() {
		if p := recover(); p != nil && p != any(r) {
			panic(p)
		}
		failure = r.failure
	}()
	check(r)
	return ""
}

func TestSpaceSeesStrayWrites(t *testing.T) {
	for _, c := range []struct {
		name, want string
		write      func(s *Space)
	}{
		{"nothing", "", func(s *Space) {
			x, y := In(s, "x", []float32{1, 2}), Out[float32](s, "y", 3)
			copy(y, x)
		}},
		{"behind the end", "y: byte 12 outside", func(s *Space) {
			Out[float32](s, "y", 3)
			g := &s.bufs[0]
			g.whole[g.to] = 1
		}},
		{"before the start", "y: byte -1 outside", func(s *Space) {
			Out[uint8](s, "y", 3)
			g := &s.bufs[0]
			g.whole[g.from-1] = 0
		}},
		{"an input", "x: the input changed", func(s *Space) { In(s, "x", []int64{1, 2})[1] = 3 }},
	} {
		got := failureOf(func(t testing.TB) {
			s := NewSpace(t)
			c.write(s)
			s.Check()
		})
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestSameValue(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		got        float32
		want, ulps float64
		same       bool
	}{
		{1, 1, 0, true}, {1, 1 + 0x1p-23, 1, true}, {1, 1 + 0x1p-22, 1, false}, {0, 1e-45, 1, true}, {0, 1e-40, 2, false},
		{float32(nan), nan, 0, true}, {float32(nan), 1, 2, false}, {1, nan, 2, false}, {float32(inf), inf, 0, true}, {float32(inf), -inf, 2, false},
		{math.MaxFloat32, 1e39, 2, false}, {float32(inf), math.MaxFloat32, 2, true}, {float32(inf), 1e38, 2, false},
	} {
		if got := SameValue(c.got, c.want, c.ulps); got != c.same {
			t.Errorf("SameValue(%v, %v, %v): got %v, want %v", c.got, c.want, c.ulps, got, c.same)
		}
	}
}
