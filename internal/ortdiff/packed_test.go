package ortdiff_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestPackedHeads compares MultiHeadAttention of packed operands, which ONNX
// Runtime does not run on a CPU, with its result for the same numbers in three
// operands.
func TestPackedHeads(t *testing.T) {
	memorytest.Check(t)
	ref := &reference{python: python(t, "onnxruntime")}
	defer ref.stop()
	for i := range *models {
		d := newDrawer(rand.New(rand.NewPCG(7, uint64(i))), 4)
		d.mild, d.calm = true, true
		packed, plain := d.packedHeads()
		want, err := ref.run(plain.encode(), plain.values)
		if err != nil {
			t.Fatalf("%v\n%s", err, plain)
		}
		tol := tolerances[contribDomain+"::MultiHeadAttention"]
		got, err := packed.run(packed.encode(), tol)
		if err != nil {
			t.Fatalf("model %d: %v\n%s", i, err, packed)
		}
		if diff := tol.apart(got["y0"], want["y0"], scale(packed.values...)); diff != "" {
			t.Errorf("model %d: %s\n%s", i, diff, packed)
		}
	}
}

// packedHeads draws a model with q, k and v in one operand, or k and v in one,
// and the model that has them apart.
func (d *drawer) packedHeads() (packed, plain *model) {
	batch, heads, queries, size := d.between(1, 3), d.between(1, 3), d.between(1, 4), d.between(1, 4)
	count, length, operands := 3, queries, []string{"", "", ""}
	packed, plain = &model{opset: 17}, &model{opset: 17}
	both := func(v *value) string {
		packed.values, plain.values = append(packed.values, v), append(plain.values, v)
		return v.name
	}
	single := func(name string, dims ...int) *value {
		return &value{name: name, dt: dtype.F32, dims: dims, data: d.data(dtype.F32, elements(dims)), constant: d.chance(0.2)}
	}
	if d.chance(0.5) {
		count, length = 2, d.between(1, 4)
		operands[0] = both(single("q", batch, queries, heads*size))
	}
	all := single("packed", batch, length, heads, count, size)
	packed.values = append(packed.values, all)
	apart := append([]string{}, operands...)
	for j := range count {
		part := &value{name: fmt.Sprint("part", j), dt: dtype.F32, dims: []int{batch, length, heads * size}}
		for row := range batch * length * heads {
			part.data = append(part.data, all.data[4*size*(row*count+j):][:4*size]...)
		}
		plain.values = append(plain.values, part)
		apart[3-count+j] = part.name
	}
	operands[3-count] = "packed"
	bias, mask := "", ""
	if count == 3 && d.chance(0.5) {
		bias = both(single("bias", 3*heads*size))
	}
	if d.chance(0.5) {
		mask = both(&value{name: "mask", dt: dtype.I32, dims: []int{batch, length}, data: d.flags(batch * length)})
	}
	attrs := []attr{{"num_heads", int64(heads)}}
	for m, in := range map[*model][]string{packed: operands, plain: apart} {
		m.graph.nodes = []*node{{op: "MultiHeadAttention", domain: contribDomain, in: append(in, bias, mask), out: []string{"y0"}, attrs: attrs}}
		m.graph.outputs = []typed{{name: "y0"}}
	}
	return packed, plain
}
