package check_test

import (
	"slices"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/plan"
)

const (
	boxesConcat = `func @concat(%x: f32[2,3,4]) -> (f32[2,6,4]) {
  %a = neg(%x)
  %b = relu(%x)
  %c = concat(%a, %b) {axis = 1}
  %d = relu(%c)
  %e = neg(%a)
  %f = concat(%e, %e) {axis = 1}
  %g = add(%f, %d)
  return %g
}`
	boxesSplit = `func @split(%x: f32[2,6,4]) -> (f32[2,3,4]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 1}
  %p = relu(%h)
  %q = add(%p, %t)
  %r = neg(%q)
  return %r
}`
	boxesPad = `func @pad(%x: f32[2,3]) -> (f32[2,6]) {
  %a = neg(%x)
  %b = test.frame(%a) {axis = 1, before = 1, after = 2}
  %c = relu(%b)
  %d = neg(%c)
  return %d
}`
	boxesNested = `func @nested(%x: f32[2,2,2]) -> (f32[2,4,4]) {
  %a = neg(%x)
  %b = relu(%x)
  %c = concat(%a, %b) {axis = 1}
  %d = neg(%c)
  %e = concat(%c, %d) {axis = 2}
  %f = relu(%e)
  return %f
}`
	boxesReshaped = `func @reshaped(%x: f32[2,3,4]) -> (f32[2,24]) {
  %a = neg(%x)
  %m = test.merge(%a) {axis = 1}
  %n = relu(%m)
  %c = concat(%m, %n) {axis = 1}
  %d = relu(%c)
  return %d
}`
	boxesMerged = `func @merged(%x: f32[2,3,4]) -> (f32[6,4]) {
  %a = neg(%x)
  %m = test.merge(%a) {axis = 0}
  %n = relu(%m)
  return %n
}`
	boxesBeside = `func @beside(%x: f32[2,4], %y: f32[3,4]) -> (f32[2,4]) {
  %a = neg(%x)
  %b = relu(%x)
  %c = neg(%y)
  %d = relu(%c)
  %e = add(%a, %b)
  %f = neg(%e)
  return %f
}`
	boxesChoice = `func @choice(%x: f32[2,4], %c: bool[]) -> (f32[2,4]) {
  %a = neg(%x)
  %r = if(%c) {
    %n = neg(%a)
    return %n
  } {
    %p = relu(%a)
    return %p
  }
  %v = neg(%r)
  return %v
}`
)

// lie puts value a where b is, n bytes further on, with strides.
func (d *draft) lie(a, b string, n int64, strides ...int64) {
	d.move(a, b, n)
	d.at(a).Strides = slices.Clip(strides)
	if len(strides) == 0 {
		d.at(a).Strides = nil
	}
}

// boxMutants are mutants of plans with strides.
var boxMutants = []mutant{
	// Operands that are parts of a result along an inner axis.
	{name: "parts of rows", in: boxesConcat, change: func(*draft) {}},
	{name: "a part one row off", in: boxesConcat, change: func(d *draft) { d.at("a").Offset += 16 }, rule: check.Read, text: "%a: bytes ["},
	{name: "a part one element off", in: boxesConcat, change: func(d *draft) { d.at("a").Offset += 4 }, rule: check.Read, text: "got %b from its byte 0, want %a from its byte 44"},
	{name: "a part moved along the outer axis", in: boxesConcat, change: func(d *draft) { d.at("a").Offset += 96 }, rule: check.Alias, text: "for a part that is written"},
	{name: "two parts that meet in one element", in: boxesConcat, change: func(d *draft) { d.at("b").Offset -= 4 }, rule: check.Read, text: "got %b from its byte 0, want %a from its byte 44"},
	{name: "two parts in one box", in: boxesConcat, change: func(d *draft) { d.move("b", "a", 0) }, rule: check.Read, text: "got %b"},
	{name: "parts in each other's boxes", in: boxesConcat, change: func(d *draft) {
		d.at("a").Offset, d.at("b").Offset = d.at("b").Offset, d.at("a").Offset
	}, rule: check.Alias, text: "may not overwrite"},
	{name: "a part with a smaller stride", in: boxesConcat, change: func(d *draft) { d.at("a").Strides = []int64{23, 4, 1} }, rule: check.Read, text: "%a"},
	{name: "a part with a larger stride", in: boxesConcat, change: func(d *draft) { d.at("a").Strides = []int64{25, 4, 1} }, rule: check.Read, text: "%a"},
	{name: "a part with a larger inner stride", in: boxesConcat, change: func(d *draft) { d.at("a").Strides = []int64{24, 5, 1} }, rule: check.Read, text: "%a"},
	{name: "a part without strides", in: boxesConcat, change: func(d *draft) { d.at("a").Strides = nil }, rule: check.Read, text: "%a"},
	{name: "a part elsewhere", in: boxesConcat, change: func(d *draft) { d.lie("a", "a", 1<<12) }},
	{name: "a part elsewhere with strides", in: boxesConcat, change: func(d *draft) { d.at("a").Offset += 1 << 12 }},
	{name: "both parts elsewhere", in: boxesConcat, change: func(d *draft) { d.lie("a", "a", 1<<12); d.lie("b", "a", 1<<12) }},
	{name: "a result over a part that is read later", in: boxesConcat, change: func(d *draft) { d.move("d", "c", 0) }, rule: check.Read, text: "want %a"},
	{name: "a part in place of a part", in: boxesConcat, change: func(d *draft) { d.lie("e", "a", 0, 24, 4, 1) }},
	{name: "a contiguous result over a part", in: boxesConcat, change: func(d *draft) { d.lie("e", "a", 0) }, rule: check.Alias, text: "in runs of 48 bytes, 2 of them 96 apart: the operator allows same"},
	{name: "a result over a part, with another stride", in: boxesConcat, change: func(d *draft) { d.lie("e", "a", 0, 30, 4, 1) }, rule: check.Alias, text: "the operator allows same"},
	{name: "strides in the order of columns", in: boxesConcat, change: func(d *draft) { d.at("a").Strides = []int64{1, 2, 6} }, keep: true, rule: check.Document, text: "strides: axis 1"},

	// Parts of parts.
	{name: "parts of parts", in: boxesNested, change: func(*draft) {}},
	{name: "a part of a part one column off", in: boxesNested, change: func(d *draft) { d.at("d").Offset -= 4 }, rule: check.Alias, text: "in runs of 8 bytes, 8 of them 16 apart: the operator allows same"},
	{name: "a part of a part with the strides of the part", in: boxesNested, change: func(d *draft) { d.at("a").Strides = nil }, rule: check.Alias, text: "for a part that is written"},
	{name: "a part without strides over its own parts", in: boxesNested, change: func(d *draft) { d.at("c").Strides = nil }, rule: check.Alias, text: "may not overwrite"},

	// Boxes of an operand.
	{name: "boxes of an operand", in: boxesSplit, change: func(*draft) {}},
	{name: "a box one row off", in: boxesSplit, change: func(d *draft) { d.at("t").Offset += 16 }, rule: check.Alias, text: "also those of result %h"},
	{name: "a box moved along the outer axis", in: boxesSplit, change: func(d *draft) { d.at("t").Offset += 96 }, rule: check.Alias},
	{name: "a box one element off", in: boxesSplit, change: func(d *draft) { d.at("t").Offset += 4 }, rule: check.Alias},
	{name: "a box without strides", in: boxesSplit, change: func(d *draft) { d.at("t").Strides = nil }, rule: check.Alias},
	{name: "a box with another stride", in: boxesSplit, change: func(d *draft) { d.at("t").Strides = []int64{25, 4, 1} }, rule: check.Alias},
	{name: "boxes in each other's places", in: boxesSplit, change: func(d *draft) {
		d.at("h").Offset, d.at("t").Offset = d.at("t").Offset, d.at("h").Offset
	}, rule: check.Alias},
	{name: "one of two boxes copied", in: boxesSplit, change: func(d *draft) { d.lie("t", "t", 1<<12) }},
	{name: "both boxes copied", in: boxesSplit, change: func(d *draft) {
		d.lie("t", "t", 1<<12)
		d.lie("h", "t", 1<<12)
		d.Declined = []plan.Declined{{Call: 1, Op: "split", Value: "a", Bytes: 192}}
	}},
	{name: "boxes as declined", in: boxesSplit, change: func(d *draft) {
		d.Declined = []plan.Declined{{Call: 1, Op: "split", Value: "a", Bytes: 192}}
	}, rule: check.Claim, text: "as declined"},
	{name: "a value in place of a box", in: boxesSplit, change: func(d *draft) { d.lie("p", "h", 0, 24, 4, 1) }},
	{name: "a value over a box that is read later", in: boxesSplit, change: func(d *draft) { d.lie("p", "t", 0, 24, 4, 1) }, rule: check.Read, text: "%t: bytes ["},
	{name: "a contiguous value in place of a box", in: boxesSplit, change: func(d *draft) { d.lie("p", "h", 0) }, rule: check.Alias},
	{name: "a value of other strides over a box that is read later", in: boxesSplit, change: func(d *draft) { d.lie("p", "t", 96, 26, 5, 1) }, rule: check.Read, text: "%t"},
	{name: "a claim of a box less", in: boxesSplit, change: func(d *draft) { d.InPlace = d.InPlace[1:] }, keep: true, rule: check.Claim},
	{name: "a claim of a box as same", in: boxesSplit, change: func(d *draft) { d.InPlace[0].Kind = plan.AliasSame }, keep: true, rule: check.Claim, text: "view, as the operator has it"},

	// An operand inside of the result.
	{name: "an operand inside", in: boxesPad, change: func(*draft) {}},
	{name: "an operand inside one element off", in: boxesPad, change: func(d *draft) { d.at("a").Offset -= 4 }, rule: check.Alias, text: "may not overwrite"},
	{name: "an operand inside one row off", in: boxesPad, change: func(d *draft) { d.at("a").Offset += 24 }, rule: check.Alias},
	{name: "an operand inside with another stride", in: boxesPad, change: func(d *draft) { d.at("a").Strides = []int64{7, 1} }, rule: check.Alias},
	{name: "an operand inside without strides", in: boxesPad, change: func(d *draft) { d.at("a").Strides = nil }, rule: check.Alias},
	{name: "an operand outside", in: boxesPad, change: func(d *draft) { d.lie("a", "a", 60+1<<12) }},

	// Views of values with strides.
	{name: "a reshaped view with strides", in: boxesReshaped, change: func(d *draft) { d.lie("a", "c", 0, 24, 4, 1); d.lie("m", "c", 0, 24, 1) }},
	{name: "a reshaped view with another stride", in: boxesReshaped, change: func(d *draft) { d.lie("a", "c", 0, 24, 4, 1); d.lie("m", "c", 0, 25, 1) }, rule: check.Alias, text: "the operator allows view"},
	{name: "a reshaped view without strides", in: boxesReshaped, change: func(d *draft) { d.lie("a", "c", 0, 24, 4, 1); d.lie("m", "c", 0) }, rule: check.Alias, text: "in runs of 48 bytes, 2 of them 96 apart"},
	{name: "a reshaped view of a value without strides", in: boxesReshaped, change: func(d *draft) { d.at("m").Strides = []int64{24, 1} }, rule: check.Alias},
	{name: "a reshaped view that strides cannot say", in: boxesMerged, change: func(d *draft) { d.at("a").Strides = []int64{24, 4, 1}; d.at("m").Strides = []int64{12, 1} }, rule: check.Alias},
	{name: "a reshaped view that is copied", in: boxesMerged, change: func(d *draft) { d.at("a").Strides = []int64{24, 4, 1}; d.lie("m", "m", 1<<12) }},
	{name: "rows with gaps that are one axis", in: boxesMerged, change: func(d *draft) { d.at("a").Strides = []int64{18, 6, 1}; d.at("m").Strides = []int64{6, 1} }},

	// Values that have nothing to do with each other.
	{name: "rows between the rows of another value", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 8, 1); d.lie("b", "a", 16, 8, 1) }},
	{name: "rows between the rows of another value, of another size", in: boxesBeside, choose: shareNothing, change: func(d *draft) {
		d.lie("a", "a", 1<<12, 16, 1)
		d.lie("b", "a", 16, 16, 1)
		d.lie("c", "a", 32, 8, 1) // [32,48), [64,80) is a's
	}, rule: check.Read, text: "want %a from its byte 16"},
	{name: "rows that begin with the last element of another's", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 8, 1); d.lie("b", "a", 12, 8, 1) }, rule: check.Read, text: "got %b from its byte 0, want %a from its byte 12"},
	{name: "rows that cannot be compared", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 8, 1); d.lie("b", "a", 16, 11, 1) }, rule: check.Read, text: "%a"},
	{name: "rows that cannot be compared, apart", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 8, 1); d.lie("b", "a", 48, 11, 1) }},
	{name: "contiguous bytes between rows", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 16, 1); d.lie("b", "a", 16) }},
	{name: "contiguous bytes over a row", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("a", "a", 1<<12, 11, 1); d.lie("b", "a", 16) }, rule: check.Read, text: "got %b from its byte 28, want %a from its byte 16"},
	{name: "rows over the rows of what is read no more", in: boxesBeside, choose: shareNothing, change: func(d *draft) { d.lie("e", "c", 4, 11, 1) }},

	// Spaces.
	{name: "strides past an output", in: boxesSplit, change: func(d *draft) { d.at("r").Strides = []int64{24, 4, 1} }, rule: check.Place, text: "a box in bytes [0,144) of output 0"},
	{name: "an input with strides", in: boxesSplit, change: func(d *draft) { d.at("x").Strides = []int64{48, 4, 1} }, rule: check.Place},
	{name: "strides into a region's result", in: boxesChoice, change: func(d *draft) {
		for _, name := range []string{"r", "n", "p"} {
			d.lie(name, "r", 0, 8, 1)
		}
	}, rule: check.Branch, text: "contiguous"},

	// Figures.
	{name: "an arena without the extent of the last value", in: boxesMerged, change: func(d *draft) {
		d.at("a").Strides, d.at("m").Strides = []int64{99, 33, 1}, []int64{33, 1}
		honest(parse(d.t, boxesMerged), d.Plan, nil)
		d.ArenaBytes, d.LowerBoundBytes, d.Peak = 128, 0, plan.Peak{}
	}, keep: true, rule: check.Document, text: "within the arena's 128"},
	{name: "a peak without the gaps", in: boxesMerged, change: func(d *draft) {
		d.at("a").Strides, d.at("m").Strides = []int64{99, 33, 1}, []int64{33, 1}
		honest(parse(d.t, boxesMerged), d.Plan, nil)
		d.Peak.Bytes, d.LowerBoundBytes = 128, 128
	}, keep: true, rule: check.Figure, text: "peak bytes 128, want 704"},
}
