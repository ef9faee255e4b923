package compute

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/op"
)

// FuzzBlockTables runs calls with drawn tables, places and lengths. A call
// fails exactly if it would read or write a column whose number is no block of
// the pool, or rows that the table has no room for.
func FuzzBlockTables(f *testing.F) {
	f.Add(int64(0), int64(1), int64(2), int64(3), int64(0), int64(4))
	f.Add(int64(3), int64(-1), int64(2), int64(1), int64(2), int64(5))
	f.Add(int64(1), int64(1), int64(1), int64(1), int64(-1), int64(-1))
	f.Add(int64(2), int64(1<<62), int64(0), int64(-1<<63), int64(1), int64(1<<62))
	f.Add(int64(2), int64(0), int64(0), int64(2), int64(3), int64(1))
	f.Fuzz(func(t *testing.T, a, b, c, d, first, second int64) {
		const blocks, rows, columns, size = 3, 2, 2, 4
		table, at := []int64{a, b, c, d}, []int64{first, second}
		isBlock := func(sequence int, from, to int64) bool { // rows [from, to)
			for row := from; row < to; row++ {
				if n := table[int64(sequence*columns)+row/rows]; n < 0 || n >= blocks {
					return false
				}
			}
			return true
		}
		scatters, attends := true, true
		for i, n := range at {
			scatters = scatters && n >= 0 && n < rows*columns && isBlock(i, n, n+1)
			attends = attends && n >= 0 && n <= rows*columns && isBlock(i, 0, n)
		}
		pool, update := make([]float32, blocks*rows*size), make([]float32, 2*size)
		check := func(name string, valid bool, c *op.Call) {
			freshResults(c)
			err := Eval(c)
			if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "got ") {
				t.Errorf("%s with table %v and %v: got error %v, want none: %v", name, table, at, err, valid)
			}
		}
		x, u, in, n := arg(pool, blocks, 1, rows, size), arg(update, 2, 1, 1, size), arg(table, 2, columns), ints(at...)
		check("block_scatter", scatters, call(t, "block_scatter", nil, 1, x, u, in, n))
		check("block_gather", attends, call(t, "block_gather", nil, 1, x, in, n, arg(make([]float32, rows*columns), rows*columns)))
		check("block_attention", attends, call(t, "block_attention", nil, 1, u, x, x, in, n))
	})
}
