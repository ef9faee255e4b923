package text_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/text"
)

func TestAppendFloat(t *testing.T) {
	r := kerneltest.NewRand(190)
	for range 2000 {
		v := math.Float64frombits(r.Uint64())
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		if got, want := string(text.AppendFloat(nil, v)), fmt.Sprintf("%.8g", v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{math.Inf(1): "INF", math.Inf(-1): "-INF", 100000: "100000", 1e8: "1e+08", -12345678: "-12345678", 0.0001: "0.0001", 0.00001: "1e-05"} {
		if got := string(text.AppendFloat(nil, v)); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if got := string(text.AppendFloat(nil, math.NaN())); got != "NaN" {
		t.Errorf("got %s, want NaN", got)
	}
}

// Numbers that are written are read again.
func TestParseNumbers(t *testing.T) {
	r := kerneltest.NewRand(191)
	for range 2000 {
		v := r.Uint64() >> r.IntN(64)
		if got, err := text.ParseUint(fmt.Appendf(nil, " %d", v)); err != nil || got != v {
			t.Errorf("%d: got %d (%v)", v, got, err)
		}
		if got, err := text.ParseInt(fmt.Appendf(nil, "%+d ", int64(v))); err != nil || got != int64(v) {
			t.Errorf("%d: got %d (%v)", int64(v), got, err)
		}
		f := math.Float64frombits(v)
		if got, err := text.ParseFloat(fmt.Append(nil, f)); err != nil || got != f && !math.IsNaN(f) {
			t.Errorf("%v: got %v (%v)", f, got, err)
		}
	}
	for s, want := range map[string]float64{"1e400": math.Inf(1), "-1e400": math.Inf(-1), "Infinity": math.Inf(1)} {
		if got, err := text.ParseFloat([]byte(s)); err != nil || got != want {
			t.Errorf("%s: got %v (%v), want %v", s, got, err, want)
		}
	}
	for s, want := range map[string]uint64{"1e19": 1e19, "-3.7": 1<<64 - 3, "9223372036854775808.5": 1 << 63, "18446744073709551615": math.MaxUint64} {
		if got, err := text.ParseUint([]byte(s)); err != nil || got != want {
			t.Errorf("%s: got %v (%v), want %v", s, got, err, want)
		}
	}
	for _, s := range []string{"", "-", "+", "12a", "18446744073709551616", "nan"} {
		if got, err := text.ParseUint([]byte(s)); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("got %q", s)) {
			t.Errorf("%q: got %d (%v), want an error that has the text", s, got, err)
		}
	}
}
