package opcases

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(attentionCases)

func attentionCases() map[string][]optest.Case {
	q, k, v := num(f32, 2, 4, 3, 8), num(f32, 2, 2, 5, 8), num(f32, 2, 2, 5, 6)
	past := args{q, k, v, num(f32, 3, 9), num(f32, 2, 2, 4, 8), num(f32, 2, 2, 4, 6)}
	packed := attr("q_num_heads", 4, "kv_num_heads", 2)
	return map[string][]optest.Case{
		"attention": {
			{Args: args{q, k, v}}, {Args: past, Results: 4, Attrs: attr("qk_matmul_output_mode", 3)}, {Args: args{q, k, v, num(boo, 2, 1, 3, 5)}, Attrs: attr("is_causal", 1, "softcap", 2.0)},
			{Args: args{num(f32, 2, 3, 32), num(f32, 2, 5, 16), num(f32, 2, 5, 12)}, Attrs: packed, Results: 3}, {Args: args{q, k, v, absent, absent, absent, list(5, 2)}, Attrs: attr("is_causal", 1, "left_window_size", 2)},
			{Args: args{num(f16, 1, 2, 3, 8), num(f16, 1, 2, 5, 8), num(f16, 1, 2, 5, 8)}}, {Args: args{num(f32, 1, 4, 60, 32), num(f32, 1, 4, 61, 32), num(f32, 1, 4, 61, 32)}}, {Args: args{num(f64, 1, 1, 2, 3), num(f64, 1, 1, 0, 3), num(f64, 1, 1, 0, 3)}},
		},
		"fused_attention": {
			{Args: args{num(f32, 3, 8), num(f32, 5, 8), num(f32, 5, 6)}, Attrs: attr("scale", 0.5)},
			{Args: args{q, k, v, num(f32, 3, 5)}}, {Args: args{q, k, v, num(f32, 2, 1, 1, 5), num(boo, 1, 4, 3, 1)}, Attrs: attr("fill", -1.5, "mask_after", 1, "mask_hides", 1)},
			{Args: args{num(f32, 2, 3, 4, 8), num(f32, 2, 5, 2, 8), num(f32, 5, 2, 2, 6), absent, num(boo, 3, 5)}, Attrs: attr("q_perm", ints(0, 2, 1, 3), "k_perm", ints(0, 2, 1, 3), "v_perm", ints(1, 2, 0, 3), "y_perm", ints(0, 2, 1, 3), "fill", -1e9)},
			{Args: args{num(f32, 1, 3, 2, 30, 20), num(f32, 4, 1, 2, 20, 70), num(f32, 4, 3, 2, 70, 40)}, Attrs: attr("k_perm", ints(0, 1, 2, 4, 3), "nan_to_zero", 1)},
			{Args: args{num(f32, 2, 70, 24), num(f32, 2, 1100, 24), num(f32, 2, 1100, 33), num(f32, 70, 1)}}, {Args: args{num(f32, 2, 3, 8), num(f32, 2, 0, 8), num(f32, 2, 0, 4)}},
			{Args: args{num(f16, 2, 4, 3, 8), num(f16, 2, 2, 5, 8), num(f16, 2, 2, 5, 6), num(f16, 4, 3, 5), num(boo, 5), num(f32, 3, 1)}, Attrs: attr("softcap", 2.0, "mask_after", 2)},
			{Args: args{num(dtype.BF16, 1, 70, 24), num(dtype.BF16, 1, 24, 1100), num(dtype.BF16, 1, 1100, 33)}, Attrs: attr("k_perm", ints(0, 2, 1))},
			{Args: args{num(f64, 2, 3, 8), num(f64, 2, 5, 8), num(f64, 2, 5, 4), num(f64, 3, 5), num(boo, 3, 1), num(f64, 5)}, Attrs: attr("softcap", 0.5, "nan_to_zero", 1)},
			{Args: args{num(f32, 6, 2, 7, 4), num(f32, 6, 2, 7, 4), num(f32, 6, 2, 7, 4), num(f32, 1, 2, 7, 7), absent, num(f32, 1, 3, 1, 7, 7)}},
			{Args: args{num(f32, 6, 7, 4), num(f32, 6, 7, 4), num(f32, 6, 7, 4), num(f32, 6, 1, 7), num(boo, 2, 1, 1, 7), num(f32, 1, 3, 7, 7)}},
		},
		"block_scatter": {
			blocksCase(num(f32, 5, 2, 4, 3), num(f32, 2, 2, 3, 3), table(2, 4, 2, 9, 9, 1, 3), list(2, 7)),
			{Args: args{num(f16, 3, 1, 2, 4), num(f16, 1, 1, 0, 4), table(1, 8, 8), list(3), list(3)}}, {Args: args{num(f64, 3, 1, 2, 4), num(f64, 1, 1, 2, 4), table(1, 2, 0), list(1), list(1)}},
			{Args: args{num(f32, 3, 1, 2, 4), num(f32, 1, 1, 2, 4), table(1, 2, 3), list(1)}, Fails: "got block 3 in column 1 of sequence 0, want 0 to 2"},
			{Args: args{num(f32, 3, 1, 2, 4), num(f32, 1, 1, 2, 4), table(1, -1, 0), list(1)}, Fails: "got block -1 in column 0"},
			{Args: args{num(f32, 3, 1, 2, 4), num(f32, 1, 1, 2, 4), table(1, 2, 0), list(3)}, Fails: "got row 3 for sequence 0, want 0 to 2"},
			{Args: args{num(f32, 3, 1, 2, 4), num(f32, 1, 1, 2, 4), table(1, 2, 0), list(1), list(2)}, Fails: "got row 1 for sequence 0, want 2"},
		},
		"block_gather": {
			gatheredCase(num(f32, 5, 2, 4, 3), table(2, 4, 2, 9, 0, 1, 3), list(7, 12), 12, 0), gatheredCase(num(f32, 5, 3, 2, 5), table(3, 4, 0, 9, 9, 2, 9), list(3, 0, 2), 4, 1),
			gatheredCase(num(f32, 40, 64, 16, 6), table(2, 4, 2, 39, 7, 9, 11), list(33, 48), 70, 1),
			{Args: args{num(f16, 3, 1, 2, 4), table(1, 2, 0), list(3), num(boo, 3, 0)}}, {Args: args{num(f64, 3, 1, 2, 4), table(1, 8, 8), list(0), num(boo, 0)}},
			{Args: args{num(f32, 3, 1, 2, 4), table(1, 2, 3), list(3), num(boo, 9)}, Fails: "got block 3 in column 1 of sequence 0, want 0 to 2"},
			{Args: args{num(f32, 3, 1, 2, 4), table(1, 2, 0), list(5), num(boo, 9)}, Fails: "got 5 rows for sequence 0, want 0 to 4"},
			{Args: args{num(f32, 3, 1, 2, 4), table(1, 2, 0), list(4), num(boo, 3)}, Fails: "got 4 rows for sequence 0, want 0 to 3"},
			{Args: args{num(f32, 3, 1, 2, 4), table(1, 2, 0), list(-1), num(boo, 3)}, Fails: "got -1 rows for sequence 0"},
		},
		"block_attention": {
			attendedCase[float32](num(f32, 2, 4, 3, 8), num(f32, 5, 2, 4, 8), num(f32, 5, 2, 4, 6), table(2, 4, 0, 9, 2, 4, 1), list(7, 12)),
			attendedCase[float64](num(f64, 3, 2, 1, 5), num(f64, 2, 1, 3, 5), num(f64, 2, 1, 3, 5), table(3, 0, 9, 1, 9, 1, 0), list(2, 3, 6)),
			{Args: args{q, num(f32, 5, 2, 4, 8), num(f32, 5, 2, 4, 6), table(2, 4, 0, 9, 2, 4, 1), list(7, 12), num(f32, 2, 1, 3, 12)}, Attrs: attr("is_causal", 1, "softcap", 2.0, "left_window_size", 4)},
			{Args: args{q, num(f32, 5, 2, 4, 8), num(f32, 5, 2, 4, 6), table(2, 9, 9, 9, 2, 4, 1), list(0, 12), num(boo, 3, 8)}, Attrs: attr("right_window_size", 1, "scale", 0.5)},
			{Args: args{q, num(f32, 5, 2, 4, 8), num(f32, 5, 2, 4, 6), table(2, 0, 5, 9, 2, 4, 1), list(5, 12)}, Fails: "got block 5 in column 1 of sequence 0, want 0 to 4"},
			{Args: args{q, num(f32, 5, 2, 4, 8), num(f32, 5, 2, 4, 6), table(2, 0, 1, 2, 2, 4, 1), list(5, 13)}, Fails: "got 13 keys for sequence 1, want 0 to 12"},
		},
		"rotary_embedding": {
			{Args: args{num(f32, 2, 4, 3, 8), num(f32, 9, 4), num(f32, 9, 4), optest.Of([]int64{0, 8, 3, 1, 1, 2}, 2, 3)}}, {Args: args{num(f32, 2, 3, 32), num(f32, 2, 3, 2), num(f32, 2, 3, 2)}, Attrs: attr("num_heads", 4, "rotary_embedding_dim", 4)},
			{Args: args{num(f16, 2, 4, 3, 8), num(f16, 2, 3, 4), num(f16, 2, 3, 4)}, Attrs: attr("interleaved", 1)}, {Args: args{num(f32, 2, 8, 70, 64), num(f32, 2, 70, 32), num(f32, 2, 70, 32)}},
		},
		"rms_normalization": {{Args: args{num(f32, 3, 4, 5), num(f32, 5)}}, {Args: args{num(f16, 3, 4, 5), num(f16, 4, 1)}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 90, 801), num(f32, 801)}}},
	}
}

// table is a table of blocks for so many sequences.
func table(batch int, blocks ...int64) optest.Operand {
	return optest.Of(blocks, batch, len(blocks)/batch)
}

// blocksCase writes rows into the blocks of a pool.
func blocksCase(pool, update, table, at optest.Operand) optest.Case {
	c := optest.Case{Args: args{pool, update, table, at}}
	p, u, size := pool.Shape.Sizes(), update.Shape.Sizes(), pool.Shape.Size(3)
	want, from := append([]float32{}, elements[float32](pool)...), elements[float32](update)
	for b := range u[0] {
		for h := range u[1] {
			for i := range u[2] {
				row := int(elements[int64](at)[b]) + i
				block := int(elements[int64](table)[b*table.Shape.Size(1)+row/p[2]])
				copy(want[((block*p[1]+h)*p[2]+row%p[2])*size:][:size], from[((b*u[1]+h)*u[2]+i)*size:])
			}
		}
	}
	c.Want = []optest.Operand{optest.Of(want, p...)}
	return c
}

// gatheredCase reads the rows of blocks: n of each sequence, where zeros stand
// for those that it does not have.
func gatheredCase(pool, table, lengths optest.Operand, n, end int) optest.Case {
	c := optest.Case{Args: args{pool, table, lengths, optest.Of(make([]uint8, n), n)}, Attrs: attr("align_end", end)}
	p, batch, columns := pool.Shape.Sizes(), table.Shape.Size(0), table.Shape.Size(1)
	from, want := elements[float32](pool), make([]float32, batch*p[1]*n*p[3])
	for b := range batch {
		used := int(elements[int64](lengths)[b])
		for h := range p[1] {
			for row := range used {
				block := int(elements[int64](table)[b*columns+row/p[2]])
				copy(want[((b*p[1]+h)*n+row+end*(n-used))*p[3]:][:p[3]], from[((block*p[1]+h)*p[2]+row%p[2])*p[3]:])
			}
		}
	}
	c.Want = args{optest.Of(want, batch, p[1], n, p[3])}
	return c
}

// attendedCase is causal attention over the rows of blocks.
func attendedCase[T float32 | float64](q, k, v, table, lengths optest.Operand) optest.Case {
	c := optest.Case{Args: args{q, k, v, table, lengths}, Attrs: attr("is_causal", 1, "scale", 0.5), Within: 1e-5}
	n, p, width := q.Shape.Sizes(), k.Shape.Sizes(), v.Shape.Size(3)
	wide := func(o optest.Operand) []float64 {
		return ref.Map(elements[T](o), func(x T) float64 { return float64(x) })
	}
	queries, keys, values := wide(q), wide(k), wide(v)
	var want []T
	for b := range n[0] {
		length := int(elements[int64](lengths)[b])
		for h := range n[1] {
			var ks, vs [][]float64
			for row := range length {
				block := int(elements[int64](table)[b*table.Shape.Size(1)+row/p[2]])
				at := (block*p[1]+h/(n[1]/p[1]))*p[2] + row%p[2]
				ks, vs = append(ks, keys[at*n[3]:][:n[3]]), append(vs, values[at*width:][:width])
			}
			for i := range n[2] {
				bias := make([]float64, length)
				for j := length - n[2] + i + 1; j < length; j++ {
					bias[j] = math.Inf(-1)
				}
				y := ref.Attend(queries[((b*n[1]+h)*n[2]+i)*n[3]:][:n[3]], ks, vs, bias, 0.5, 0)
				want = append(want, ref.Map(y, func(x float64) T { return T(x) })...)
			}
		}
	}
	c.Want = args{optest.Of(want, n[0], n[1], n[2], width)}
	return c
}
