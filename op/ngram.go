package op

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var ngramOps = []*Def{
	{
		Name: "tf_idf", ONNX: "TfIdfVectorizer",
		Doc:     "counts, or weights by TF-IDF, the occurrences in x [N,length] or [length] of each n-gram of a pool, with up to max_skip_count items skipped between the items of an n-gram",
		MinArgs: 1, MaxArgs: 1,
		Attrs: []AttrDef{
			needed("max_gram_length", Int), needed("max_skip_count", Int), needed("min_gram_length", Int), needed("mode", String),
			needed("ngram_counts", Ints), needed("ngram_indexes", Ints), needed("pool_int64s", Ints), {Name: "weights", Kind: Floats},
		},
		Infer: inferNGrams, Alias: Fresh(),
	},
}

// maxGram bounds the length of n-grams and how many items they skip.
const maxGram = 1 << 10

// NGram is one entry of the pool of a tf_idf.
type NGram struct {
	Items  []int64
	Column int // of the result
	Weight float64
}

// NGrams returns the pool of a tf_idf, and how many columns the result has.
func (s *Sig) NGrams() (grams []NGram, columns int, err error) {
	starts, places, pool := s.Ints("ngram_counts"), s.Ints("ngram_indexes"), s.Ints("pool_int64s")
	weights := s.Attrs.Floats("weights")
	if len(weights) > 0 && len(weights) != len(places) {
		return nil, 0, badShape("weights: got %d, want one for each of the %d ngram_indexes", len(weights), len(places))
	}
	for i, from := range starts {
		to := int64(len(pool))
		if i+1 < len(starts) {
			to = starts[i+1]
		}
		n := int64(i + 1)
		if from < 0 || from > to || to > int64(len(pool)) || (to-from)%n != 0 {
			return nil, 0, badShape("ngram_counts: got %v, want rising places in a pool of %d, and whole n-grams between them", starts, len(pool))
		}
		for ; from < to; from += n {
			k := len(grams)
			if k == len(places) {
				return nil, 0, badShape("ngram_indexes: got %d, want one for each n-gram of the pool", k)
			}
			column, err := sizeOf(places[k], "ngram_indexes")
			if err != nil {
				return nil, 0, err
			}
			g := NGram{Items: pool[from : from+n], Column: column, Weight: 1}
			if len(weights) > 0 {
				g.Weight = weights[k]
			}
			grams = append(grams, g)
			columns = max(columns, column+1)
		}
	}
	if len(grams) != len(places) {
		return nil, 0, badShape("ngram_indexes: got %d, want one for each of the %d n-grams of the pool", len(places), len(grams))
	}
	return grams, columns, nil
}

func inferNGrams(s *Sig) error {
	if err := s.want(0, indices); err != nil {
		return err
	}
	if err := s.wantRank(0, 1, 2); err != nil {
		return err
	}
	if _, err := s.wantOneOf("mode", "TF", "IDF", "TFIDF"); err != nil {
		return err
	}
	least, most, skip := s.Int("min_gram_length"), s.Int("max_gram_length"), s.Int("max_skip_count")
	if least < 1 || most < least || most > maxGram || skip < 0 || skip > maxGram {
		return badShape("got n-grams of %d to %d that skip %d, want 1 or more and at most 2^10", least, most, skip)
	}
	_, columns, err := s.NGrams()
	if err != nil {
		return err
	}
	x := s.Args[0].Shape
	if x == nil {
		return s.giveAny(0, dtype.F32)
	}
	dims := slices.Clone(x.Dims())
	dims[len(dims)-1] = shape.N(columns)
	return s.give(0, dtype.F32, dims...)
}
