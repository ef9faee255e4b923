package cuda_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/tensor"
)

// onHost returns the elements of a tensor of a device.
func onHost[T dtype.Element](t testing.TB, x *tensor.Tensor) []T {
	t.Helper()
	back := must(tensor.To(context.Background(), x, nil))(t)
	defer back.Release()
	return must(tensor.Values[T](back))(t)
}

// away copies a tensor to the device of a stream and releases it.
func away(t testing.TB, s *cuda.Stream, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	return must(tensor.To(context.Background(), x.Reuse(), s.Device().Memory()))(t)
}

func random32(t testing.TB, r *rand.Rand, dims ...int) *tensor.Tensor {
	t.Helper()
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(r.NormFloat64())
	}
	return must(tensor.Of(data, dims...))(t)
}

// Results equal those of package eager, bit by bit, for views and broadcasts.
func TestOperationsEqualTheHosts(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, rig *rig) {
		s := rig.stream(t, 0)
		r := rand.New(rand.NewPCG(1, 2))
		for _, c := range []struct{ x, y []int }{
			{[]int{7}, []int{7}}, {[]int{3, 5}, []int{5}}, {[]int{2, 1, 4}, []int{3, 1}}, {[]int{}, []int{2, 2}}, {[]int{0, 3}, []int{3}}, {[]int{33, 17}, []int{33, 17}},
		} {
			hx, hy := random32(t, r, c.x...), random32(t, r, c.y...)
			want := must(eager.Add(hx, hy))(t)
			half := must(eager.Cast(want, dtype.F16))(t)
			x, y := away(t, s, hx), away(t, s, hy)
			sum := must(s.Add(x, y))(t)
			if got := onHost[float32](t, sum); !slices.Equal(got, must(tensor.Values[float32](want))(t)) {
				t.Errorf("%v + %v: got %v, want %s", c.x, c.y, got, want)
			}
			narrow := must(s.Convert(sum, dtype.F16))(t)
			if got := onHost[dtype.Float16](t, narrow); !slices.Equal(got, must(tensor.Values[dtype.Float16](half))(t)) {
				t.Errorf("%v as f16: got %v, want %s", c.x, got, half)
			}
			turned := must(sum.Transpose())(t)
			copied := must(s.Copy(turned))(t)
			there := must(want.Transpose())(t)
			if got := onHost[float32](t, copied); !slices.Equal(got, must(tensor.Values[float32](there))(t)) || !copied.Layout().IsContiguous() {
				t.Errorf("transposed copy of %v: got %v", want.Shape(), got)
			}
			for _, x := range []*tensor.Tensor{want, half, x, y, sum, narrow, turned, copied, there} {
				x.Release()
			}
		}
	})
}

func TestSums(t *testing.T) {
	onEach(t, fake.Config{NoRaces: true}, func(t *testing.T, rig *rig) {
		s := rig.stream(t, 0)
		data := make([]float32, 40000)
		exact := float32(0)
		for i := range data {
			data[i] = float32(i%64) - 20 // sums are exact in every order
			exact += data[i]
		}
		x := away(t, s, must(tensor.Of(data, 4, 10000))(t))
		defer x.Release()
		all := must(s.Sum(x))(t)
		defer all.Release()
		rows := must(s.SumLast(x))(t)
		defer rows.Release()
		if got := onHost[float32](t, all); len(got) != 1 || got[0] != exact {
			t.Errorf("got %v, want %v", got, exact)
		}
		total := float32(0)
		for _, v := range onHost[float32](t, rows) {
			total += v
		}
		if total != exact || rows.Shape().Rank() != 1 {
			t.Errorf("rows %v: got %v together, want %v", rows.Shape(), total, exact)
		}
	})
}

func TestResultsInPlace(t *testing.T) {
	onEach(t, fake.Config{}, func(t *testing.T, rig *rig) {
		s := rig.stream(t, 0)
		at := func(x *tensor.Tensor) uintptr {
			buf, offset, err := x.Hold()
			must(0, err)(t)
			defer buf.Release()
			return buf.Remote().Address + uintptr(offset)
		}
		fresh := func() *tensor.Tensor { return away(t, s, must(tensor.Of([]float32{1, 2, 3}, 3))(t)) }
		x, y := fresh(), fresh()
		place := at(x)
		z := must(s.Add(x.Donate(), y))(t)
		if at(z) != place || x.Alive() || !z.IsExclusive() {
			t.Error("add: the result is not in the donated bytes")
		}
		z = must(s.Add(y, z.Reuse()))(t)
		z = must(s.Convert(z.Donate(), dtype.I32))(t)
		z = must(s.Fill(z.Donate(), int32(7)))(t)
		z = must(s.Copy(z.Donate()))(t)
		if at(z) != place {
			t.Error("a chain of results in place has moved")
		}
		if got := onHost[int32](t, z); !slices.Equal(got, []int32{7, 7, 7}) {
			t.Errorf("got %v, want sevens", got)
		}
		zero := z0(t, s)
		for name, call := range map[string]func() (*tensor.Tensor, error){
			"narrow":   func() (*tensor.Tensor, error) { return s.Convert(z.Donate(), dtype.I8) },
			"sum":      func() (*tensor.Tensor, error) { return s.SumLast(y.Donate()) },
			"not used": func() (*tensor.Tensor, error) { return s.Add(y.Donate(), zero.Donate()) },
		} {
			if _, err := call(); !errors.Is(err, tensor.ErrNotReusable) || !strings.Contains(err.Error(), "is donated, but the result") {
				t.Errorf("%s: got %v, want ErrNotReusable", name, err)
			}
		}
		view := must(y.View())(t)
		if w := must(s.Add(y.Reuse(), z0(t, s)))(t); w != nil {
			if y.Alive() || at(w) == at(view) {
				t.Error("a reused tensor with another holder was overwritten, or lives")
			}
			w.Release()
		}
		view.Release()
		z.Release()
	})
}

// z0 returns three zeros, which the test's cleanup releases.
func z0(t *testing.T, s *cuda.Stream) *tensor.Tensor {
	x := away(t, s, must(tensor.Of([]float32{0, 0, 0}, 3))(t))
	t.Cleanup(func() { x.Release() })
	return x
}
