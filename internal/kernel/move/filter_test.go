package move_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestNonZero(t *testing.T) { kerneltest.EachVariant(t, testNonZero) }

func testNonZero(t *testing.T, v *kernel.Variant) {
	const rows, cols = 23, 17
	r := kerneltest.NewRand(16)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.I64, dtype.Bool, dtype.U8} {
		t.Run(fmt.Sprint(dt), func(t *testing.T) {
			s := kerneltest.NewSpace(t)
			data := kerneltest.CastSource(t, dt, rows*cols)
			var want [2][]int64
			for i := range rows * cols {
				e := data[i*dt.Size() : (i+1)*dt.Size()]
				if r.IntN(2) == 0 {
					clear(e)
					if dt.IsFloat() && r.IntN(2) == 0 {
						e[len(e)-1] = 0x80 // negative zero
					}
				}
				if v := ref.Decode(dt, data, i); v.Float == nil || v.Float.Sign() != 0 {
					want[0], want[1] = append(want[0], int64(i/cols)), append(want[1], int64(i%cols))
				}
			}
			src := kerneltest.CastSlice(s, "src", dt, data, true)
			if got := move.NonZeroCount(v, dt, src); got != len(want[0]) {
				t.Fatalf("count: got %d, want %d", got, len(want[0]))
			}
			dst := kerneltest.Out[int64](s, "dst", 2*len(want[0]))
			move.NonZero(v, dt, dst, src, []int{rows, cols})
			s.Check()
			kerneltest.WantEqual(t, dst, append(want[0], want[1]...))
		})
	}
}
