package compute

import "testing"

func TestTfIdf(t *testing.T) {
	a := func(mode string, least, most, skip int, weights ...float64) []any {
		return []any{"mode", mode, "min_gram_length", least, "max_gram_length", most, "max_skip_count", skip, "ngram_counts", []int64{0, 4},
			"ngram_indexes", []int64{0, 1, 2, 3, 4, 5, 6}, "pool_int64s", []int64{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}, "weights", weights}
	}
	x := arg([]int32{1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}, 12)
	expect(t, "both", eval(t, "tf_idf", attrs(a("TF", 1, 2, 5)...), x), []int{7}, []float64{0, 3, 1, 0, 1, 3, 1}, 0)
	expect(t, "pairs", eval(t, "tf_idf", attrs(a("TF", 2, 2, 0)...), x), []int{7}, []float64{0, 0, 0, 0, 1, 1, 1}, 0)
	rows := arg([]int64{3, 3, 5, 6, 2, 9}, 2, 3)
	expect(t, "weighted", eval(t, "tf_idf", attrs(a("TFIDF", 1, 2, 0, 1, 2, 3, 4, 5, 6, 7)...), rows), []int{2, 7}, []float64{0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 0)
	expect(t, "once", eval(t, "tf_idf", attrs(a("IDF", 1, 2, 0, 1, 2, 3, 4, 5, 6, 7)...), rows), []int{2, 7}, []float64{0, 2, 3, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0}, 0)
}
