package compute

import (
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// A view over the bytes of a mapped file writes nothing, not even the same
// bytes: the mapping is read-only.
func TestViewsOfReadOnlyBytes(t *testing.T) {
	page, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(page)
	x, none := random(dtype.F32, 1, 0, 1, 1, 6, 4), fromFloats(dtype.F32, nil, 1, 0, 4)
	for _, c := range []*op.Call{
		call(t, "identity", nil, 1, x),
		call(t, "reshape", nil, 1, x, ints(4, 6)),
		call(t, "transpose", attrs("perm", []int64{1, 0, 2}), 1, x),
		call(t, "expand", nil, 1, x, ints(1, 1, 1)),
		call(t, "tile", nil, 1, x, ints(1, 1, 1)),
		call(t, "pad", nil, 1, x, ints(0, 0, 0, 0, 0, 0)),
		call(t, "slice", nil, 1, x, ints(2), ints(5), ints(1)),
		call(t, "split", attrs("axis", 1), 2, x, ints(2, 4)),
		call(t, "concat", attrs("axis", 1), 1, x, none),
		call(t, "concat", attrs("axis", 1), 1, none, x),
	} {
		views := 0
		for i := range c.In {
			for r := range c.Out {
				if kind, at := c.AliasOf(i, r); kind == op.View {
					n, _ := c.Out[r].Bytes()
					c.In[i].Data, c.Out[r].Data = page[:len(c.In[i].Data)], page[at:at+n]
					views++
				}
			}
		}
		if views != len(c.Out) {
			t.Fatalf("%s: got %d views, want %d", c.Def.Name, views, len(c.Out))
		}
		if err := Eval(c); err != nil {
			t.Error(err)
		}
	}
}
