package op

// families are the built-in operators, one list per file of this package.
var families = [][]*Def{
	elementwiseOps,
	activationOps,
	bitwiseOps,
	castOps,
	shapeOps,
	movementOps,
	concatOps,
	padOps,
	sliceOps,
	indexingOps,
	reduceOps,
	normalizationOps,
	linearOps,
	quantizeOps,
	attentionOps,
	recurrentOps,
	selectionOps,
	gridOps,
	convOps,
	poolingOps,
	resizeOps,
	generatorOps,
	controlOps,
	fusedOps,
}
