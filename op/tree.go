package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// treeOps evaluate decision trees.
var treeOps = []*Def{
	{
		Name: "tree_ensemble",
		Doc: "walks decision trees for each row of x [N,features] and joins the weights of the leaves that it reaches; " +
			"returns scores [N,targets], and whether some leaf has a weight for each; operands x, nodes [n,4], the node at which each tree begins, " +
			"the weights of the leaves [leaves,targets], or all of them, the first weight of each leaf, and the target of each weight; members of sets",
		MinArgs: 4, MaxArgs: 7, MinResults: 1, MaxResults: 2,
		Attrs: []AttrDef{stringAttr("aggregate", "SUM"), intAttr("targets", 1)},
		Infer: inferTreeEnsemble, Alias: Fresh(),
	},
}

// Operands of a tree_ensemble.
const (
	TreeRows    = iota // f32 or f64 [N,features]
	TreeNodes          // see TreeNode
	TreeRoots          // where in the list of nodes each tree begins
	TreeWeights        // of the leaves, in the type of x: [leaves,targets], or [weights] with the next two operands
	TreeSpans          // the first weight of each leaf, and the number of weights [leaves+1]; absent if each leaf has one for each target
	TreeTargets        // the target of each weight; absent as the operand before
	TreeMembers        // the members of sets, with NaN after each set; absent without such nodes
)

// A node of a tree_ensemble is a row of four integers as wide as the elements
// of x, i32 or i64.
const (
	// TreeSplit has the bits of a number of the type of x: a row whose feature
	// is at most that number continues with the child, and others with the
	// node after the child. It is +Inf for a leaf. For a set it is an integer:
	// the place of the first member in the list of members.
	TreeSplit = iota
	// TreeFeature is a column of x.
	TreeFeature
	// TreeChild is the index of a node, larger than the node's own; for a leaf
	// it is the node's own index.
	TreeChild
	// TreeInfo is the index of a leaf, from 0; for other nodes it is -1 less
	// the sum of TreeEqual or TreeMember and TreeNaN.
	TreeInfo

	// TreeColumns is the number of integers in a node.
	TreeColumns
)

// Kinds of nodes in TreeInfo.
const (
	TreeNaN    = 1 // rows whose feature is NaN continue with the child
	TreeEqual  = 2 // rows whose feature equals the split continue with the child
	TreeMember = 4 // rows whose feature is in the set continue with the child
)

// TreeIndex returns the element type of the nodes and of the other lists of
// indices of a tree_ensemble whose rows have the given type.
func TreeIndex(rows dtype.DType) dtype.DType {
	if rows == dtype.F64 {
		return dtype.I64
	}
	return dtype.I32
}

func inferTreeEnsemble(s *Sig) error {
	if err := s.want(TreeRows, setOf(dtype.F32, dtype.F64)); err != nil {
		return err
	}
	dt := s.Args[TreeRows].DType
	for _, arg := range [...]int{TreeNodes, TreeRoots, TreeSpans, TreeTargets} {
		if err := s.want(arg, setOf(TreeIndex(dt))); err != nil {
			return err
		}
	}
	for _, arg := range [...]int{TreeWeights, TreeMembers} {
		if err := s.wantLike(arg, TreeRows); err != nil {
			return err
		}
	}
	if _, err := s.wantOneOf("aggregate", "SUM", "AVERAGE", "MIN", "MAX"); err != nil {
		return err
	}
	targets := s.Int("targets")
	if targets < 1 || targets > maxSize {
		return badShape("attribute \"targets\": got %d, want 1 or more", targets)
	}
	if s.Has(TreeSpans) != s.Has(TreeTargets) {
		return badShape("got one of the operands %d and %d, want both or none", TreeSpans, TreeTargets)
	}
	rows, err := s.dimsOf(TreeRows, 2)
	if err != nil {
		return err
	}
	if err := s.wantTreeTables(shape.N(int(targets))); err != nil {
		return err
	}
	for i, dt := range [2]dtype.DType{dt, dtype.Bool} {
		if i < len(s.Results) {
			if err := s.give(i, dt, rows[0], shape.N(int(targets))); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantTreeTables checks the shapes of the operands that describe the trees.
func (s *Sig) wantTreeTables(targets shape.Dim) error {
	if err := s.wantDims(TreeNodes, []shape.Dim{shape.Unknown, shape.N(TreeColumns)}); err != nil {
		return err
	}
	for _, arg := range [...]int{TreeRoots, TreeSpans, TreeTargets, TreeMembers} {
		if err := s.wantRank(arg, 1, 1); err != nil {
			return err
		}
	}
	if !s.Has(TreeSpans) {
		return s.wantDims(TreeWeights, []shape.Dim{shape.Unknown, targets})
	}
	if err := s.wantRank(TreeWeights, 1, 1); err != nil {
		return err
	}
	weights, to := s.Args[TreeWeights].Shape, s.Args[TreeTargets].Shape
	if weights == nil || to == nil {
		return nil
	}
	if _, ok := unify(weights.Dim(0), to.Dim(0)); !ok {
		return badShape("got %s and %s, want a target for each weight", s.Args[TreeWeights], s.Args[TreeTargets])
	}
	return nil
}
