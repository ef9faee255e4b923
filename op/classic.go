package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// classicOps are parts of models of support vectors and neighbours.
var classicOps = []*Def{
	{
		Name:    "row_distance",
		Doc:     "computes the distances between each row of a [n,features] and each row of b [m,features], or, with metric sqeuclidean, their squares",
		MinArgs: 2, MaxArgs: 2, Attrs: []AttrDef{stringAttr("metric", "sqeuclidean")},
		Infer: inferRowDistance, Alias: Fresh(),
	},
	{
		Name: "couple_pairs",
		Doc: "returns the probabilities of classes [n,classes] that agree best with those of one class against another one, " +
			"given for the pairs (0,1), (0,2), ..., (1,2), ... [n,pairs]; within 0.005",
		MinArgs: 1, MaxArgs: 1, Attrs: []AttrDef{needed("classes", Int)},
		Infer: inferCouplePairs, Alias: Fresh(),
	},
}

func inferRowDistance(s *Sig) error {
	if err := s.want(0, setOf(dtype.F32, dtype.F64)); err != nil {
		return err
	}
	if err := s.wantLike(1, 0); err != nil {
		return err
	}
	if _, err := s.wantOneOf("metric", "sqeuclidean", "euclidean"); err != nil {
		return err
	}
	a, err := s.dimsOf(0, 2)
	if err != nil {
		return err
	}
	b, err := s.dimsOf(1, 2)
	if err != nil {
		return err
	}
	if _, ok := unify(a[1], b[1]); !ok {
		return badShape("got %s and %s, want as many features in both", s.Args[0], s.Args[1])
	}
	return s.give(0, s.Args[0].DType, a[0], b[0])
}

// maxCoupled bounds the classes of a couple_pairs, whose work grows with the
// square of their number.
const maxCoupled = 1 << 12

func inferCouplePairs(s *Sig) error {
	if err := s.want(0, setOf(dtype.F32)); err != nil {
		return err
	}
	classes := s.Int("classes")
	if classes < 2 || classes > maxCoupled {
		return badShape("attribute \"classes\": got %d, want 2 to %d", classes, maxCoupled)
	}
	x, err := s.dimsOf(0, 2)
	if err != nil {
		return err
	}
	if err := s.wantDims(0, []shape.Dim{shape.Unknown, shape.N(int(classes * (classes - 1) / 2))}); err != nil {
		return err
	}
	return s.give(0, dtype.F32, x[0], shape.N(int(classes)))
}
