package philox_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/philox"
)

// TestPhilox compares with the known answers that the authors of the generator
// publish with their implementation, Random123.
func TestPhilox(t *testing.T) {
	const all = math.MaxUint32
	for _, c := range []struct {
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{want: [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{all, all, all, all}, [2]uint32{all, all}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox.Block(c.counter, c.key); got != c.want {
			t.Errorf("counter %x, key %x: got %x, want %x", c.counter, c.key, got, c.want)
		}
	}
}

// TestParts draws a stream at once and in parts.
func TestParts(t *testing.T) {
	for name, draw := range map[string]func([]float64, philox.Stream, int){"uniform": philox.Uniform, "normal": philox.Normal} {
		s := philox.Stream{Key: 1 << 40, Run: 3, Draw: 2}
		whole, parts := make([]float64, 1001), make([]float64, 1001)
		draw(whole, s, 0)
		for _, cut := range [][2]int{{500, 1001}, {0, 6}, {6, 500}} {
			draw(parts[cut[0]:cut[1]], s, cut[0])
		}
		for i := range whole {
			if whole[i] != parts[i] {
				t.Fatalf("%s: number %d: got %v in parts, want %v", name, i, parts[i], whole[i])
			}
		}
		other := make([]float64, 1001)
		for _, o := range []philox.Stream{{Key: 1<<40 + 1, Run: 3, Draw: 2}, {Key: 1 << 40, Run: 4, Draw: 2}, {Key: 1 << 40, Run: 3, Draw: 1}} {
			draw(other, o, 0)
			if other[0] == whole[0] && other[1] == whole[1] {
				t.Errorf("%s: streams %v and %v begin with the same numbers", name, s, o)
			}
		}
	}
}

// TestMoments compares the first moments of many numbers with those of their
// distributions. The bounds are six deviations of the estimate.
func TestMoments(t *testing.T) {
	const n = 1 << 20
	list := make([]float64, n)
	for name, c := range map[string]struct {
		draw    func([]float64, philox.Stream, int)
		moments [4]float64 // of powers 1 to 4
		even    [4]float64 // and 2, 4, 6, 8
	}{
		"uniform": {philox.Uniform, [4]float64{1. / 2, 1. / 3, 1. / 4, 1. / 5}, [4]float64{1. / 3, 1. / 5, 1. / 7, 1. / 9}},
		"normal":  {philox.Normal, [4]float64{0, 1, 0, 3}, [4]float64{1, 3, 15, 105}},
	} {
		c.draw(list, philox.Stream{Key: 9}, 0)
		for k := range c.moments {
			sum := 0.0
			for _, x := range list {
				sum += math.Pow(x, float64(k+1))
			}
			deviation := math.Sqrt((c.even[k] - c.moments[k]*c.moments[k]) / n)
			if got := sum / n; math.Abs(got-c.moments[k]) > 6*deviation {
				t.Errorf("%s: mean of power %d: got %v, want %v within %v", name, k+1, got, c.moments[k], 6*deviation)
			}
		}
		product := 0.0 // of neighbours
		for i := range list[1:] {
			product += list[i] * list[i+1]
		}
		if got, want := product/(n-1), c.moments[0]*c.moments[0]; math.Abs(got-want) > 0.01 {
			t.Errorf("%s: mean product of neighbours: got %v, want %v", name, got, want)
		}
	}
}

// TestBits counts how often each bit of the generator is set.
func TestBits(t *testing.T) {
	const n = 1 << 16
	var set [128]int
	for i := range uint32(n) {
		for j, word := range philox.Block([4]uint32{i}, [2]uint32{5}) {
			for ; word != 0; word &= word - 1 {
				set[32*j+bits.TrailingZeros32(word)]++
			}
		}
	}
	for i, got := range set {
		if math.Abs(float64(got)-n/2) > 6*math.Sqrt(n)/2 {
			t.Errorf("bit %d: got it set %d times of %d, want about half", i, got, n)
		}
	}
}
