package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(signalCases)

func signalCases() map[string][]optest.Case {
	hertz := func(v float32) optest.Operand { return optest.Of([]float32{v}) }
	return map[string][]optest.Case{
		"tf_idf": {{Args: args{optest.Of([]int64{1, 2, 1, 2, 3, 1}, 2, 3)}, Attrs: attr("mode", "TFIDF", "min_gram_length", 1, "max_gram_length", 2, "max_skip_count", 1,
			"ngram_counts", ints(0, 2), "ngram_indexes", ints(0, 2, 1), "pool_int64s", ints(1, 3, 1, 2), "weights", []float64{1, 2, 3})}},
		"dft": {
			{Args: args{num(f32, 2, 10, 1)}}, {Args: args{num(f32, 2, 8, 3, 2), absent, one(1)}, Attrs: attr("inverse", 1)}, {Args: args{num(f16, 1, 7, 1), one(12)}, Attrs: attr("onesided", 1)},
			{Args: args{num(f64, 1, 5, 2)}, Attrs: attr("inverse", 1, "onesided", 1)}, {Args: args{num(f32, 40, 500, 1)}}, {Args: args{num(f32, 0, 5, 1)}},
		},
		"stft": {
			{Args: args{num(f32, 2, 60, 1), one(7), num(f32, 16)}}, {Args: args{num(f64, 1, 60, 2), one(8), absent, one(12)}, Attrs: attr("onesided", 0)},
			{Args: args{num(f16, 1, 30, 1), one(4), num(f16, 6), one(6)}}, {Args: args{num(f32, 1, 4000, 1), one(4), num(f32, 128)}},
		},
		"mel_weight_matrix": {
			{Args: args{one(8), one(64), one(8000), hertz(20), hertz(4000)}},
			{Args: args{one(0), one(64), one(8000), hertz(20), hertz(4000)}},
		},
	}
}
