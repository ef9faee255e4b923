package op

import "github.com/tenure-go/tenure/dtype"

// randomOps draw numbers. Each call draws others: they are impure.
var randomOps = []*Def{
	{
		Name: "random_uniform", Doc: "draws numbers from low to high, all as likely as each other, in the shape that an operand holds",
		MinArgs: 1, MaxArgs: 1, Attrs: randomAttrs(floatAttr("low", 0), floatAttr("high", 1)), Infer: inferRandom, Alias: Fresh(), Impure: true,
	},
	{
		Name: "random_normal", Doc: "draws numbers of the normal distribution with that mean and that deviation, scale, in the shape that an operand holds",
		MinArgs: 1, MaxArgs: 1, Attrs: randomAttrs(floatAttr("mean", 0), floatAttr("scale", 1)), Infer: inferRandom, Alias: Fresh(), Impure: true,
	},
}

func randomAttrs(attrs ...AttrDef) []AttrDef {
	return append(attrs, AttrDef{Name: "dtype", Kind: DTypeKind, Default: dtype.F32}, AttrDef{Name: "seed", Kind: Float})
}

// Draws says which random numbers a call draws: those of a session's seed, of
// one run of it, and of the place of the call among those of the run that draw.
// A kernel that draws numbers takes Next and adds 1 to it, in its first
// function that runs once per call. Calls outside a session have none.
type Draws struct {
	Seed uint64
	Run  uint64 // counts the runs of the session
	Next uint64 // counts the calls of the run that have drawn
}

func inferRandom(s *Sig) error {
	dt := s.DType("dtype")
	if !floats.has(dt) {
		return badDType("attribute \"dtype\": got %s, want %s", dt, floats)
	}
	return s.giveListed(dt)
}
