package kerneltest

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func testFilter(t *testing.T) {
	t.Run("non_zero", testNonZero)
}

func testNonZero(t *testing.T) {
	const rows, cols = 23, 17
	r := newRand(16)
	for _, dt := range []dtype.DType{dtype.F32, dtype.F16, dtype.I64, dtype.Bool, dtype.U8} {
		t.Run(fmt.Sprint(dt), func(t *testing.T) {
			s := newSpace(t)
			data := castSource(t, dt, rows*cols)
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
			src := castSlice(s, "src", dt, data, true)
			if got := kernel.NonZeroCount(dt, src); got != len(want[0]) {
				t.Fatalf("count: got %d, want %d", got, len(want[0]))
			}
			dst := out[int64](s, "dst", 2*len(want[0]))
			kernel.NonZero(dt, dst, src, []int{rows, cols})
			s.check()
			wantEqual(t, dst, append(want[0], want[1]...))
		})
	}
}
