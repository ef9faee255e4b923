package check_test

import (
	"strings"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/plan"
)

var mutantTable = []mutant{
	// Rule 2.
	{name: "steps swapped", in: chain, change: func(d *draft) { d.swap(0, 1) }, rule: check.Order,
		text: `step 0 (neg): %a: got operand 0 before the step that computes it`},
	{name: "independent steps swapped", in: views, choose: shareNothing, change: func(d *draft) { d.swap(3, 4) }},
	{name: "readers swapped", in: `func @f(%x: f32[32]) -> (f32[32]) {
  %a = neg(%x)
  %b = relu(%a)
  %c = neg(%a)
  %d = add(%b, %c)
  return %d
}`, choose: shareNothing, change: func(d *draft) { d.swap(1, 2) }},
	{name: "a step of a branch before it", in: choice, change: func(d *draft) { d.swap(1, 2) }, rule: check.Order},
	{name: "steps of both branches swapped", in: choice, change: func(d *draft) { d.swap(4, 5) }, rule: check.Order, text: "call 5, which is in another block"},
	{name: "a step behind the branch", in: choice, change: func(d *draft) { d.swap(5, 6) }, rule: check.Order},
	{name: "impure steps swapped", in: twins, choose: shareNothing, change: func(d *draft) { d.swap(1, 2) }, broken: true, rule: check.Order, text: "impure call 1 after impure call 2"},
	{name: "a call that is not there", in: chain, change: func(d *draft) { d.Steps[3].Call = 4 }, keep: true, rule: check.Order, text: "got call 4, want one of 4"},
	{name: "a step is missing", in: chain, change: func(d *draft) { d.Steps = d.Steps[:3] }, keep: true, rule: check.Order, text: "got 3 steps, want one per call, 4"},

	// Rule 3.
	{name: "outside the output", in: chain, change: func(d *draft) { d.at("d").Offset = 4 }, rule: check.Place, text: "bytes [4,132) of output 0"},
	{name: "no such output", in: chain, change: func(d *draft) { d.at("d").Arg = 1 }, rule: check.Place, text: "got output 1, want one of 1"},
	{name: "no such input", in: chain, change: func(d *draft) { d.at("x").Arg = 1 }, rule: check.Place},
	{name: "not aligned", in: chain, choose: shareNothing, change: func(d *draft) { d.at("b").Offset += 2 }, rule: check.Place, text: "a multiple of 4"},
	{name: "complex numbers on half of their size", in: `func @f(%x: c64[4]) -> (c64[4]) {
  %a = copy(%x)
  %b = copy(%a)
  return %b
}`, change: func(d *draft) { d.at("a").Offset = 4 }},
	{name: "an input elsewhere", in: chain, change: func(d *draft) { d.move("x", "a", 0) }, rule: check.Place},
	{name: "a weight elsewhere", in: chain, change: func(d *draft) { d.move("w", "a", 0) }, rule: check.Place},
	{name: "a weight at an offset", in: chain, change: func(d *draft) { d.at("w").Offset = 4 }, rule: check.Place},
	{name: "a constant", in: chain, change: func(d *draft) { d.at("b").Space = plan.SpaceConstant }, rule: check.Place},
	{name: "computed into a weight's place", in: chain, change: func(d *draft) { d.move("b", "w", 0) }, rule: check.Place},
	{name: "wide elements in a narrow buffer", in: `func @f(%x: f32[4]) -> (i8[32]) {
  %a = cast(%x) {to = f64}
  %b = cast(%a) {to = i8}
  %c = test.mix(%b) {size = 8}
  %d = cast(%c) {to = i8}
  %e = concat(%d, %d, %d, %d) {axis = 0}
  return %e
}`, change: func(d *draft) { d.move("a", "e", 0) }, rule: check.Place, text: "elements of f64"},

	// Rule 4.
	{name: "offset shifted into a live value", in: later, choose: shareNothing, change: func(d *draft) { d.move("c", "a", -64) }, rule: check.Read,
		text: `step 3 (add): %a: bytes [128,192) of the arena: got %c from its byte 64, want %a from its byte 0`},
	{name: "offset shifted into nothing", in: later, choose: shareNothing, change: func(d *draft) { d.at("c").Offset += 1 << 20 }},
	{name: "bytes reused too early", in: later, choose: shareNothing, change: func(d *draft) { d.move("b", "a", 0) }, rule: check.Read, text: "%a"},
	{name: "bytes reused in time", in: chain, choose: shareNothing, change: func(d *draft) { d.move("c", "a", 0) }},
	{name: "a view at another offset", in: views, change: func(d *draft) { d.at("t").Offset -= 4 }, rule: check.Alias},
	{name: "a copied view over what the other view holds", in: views, choose: shareNothing, change: func(d *draft) { d.move("h", "t", 0) }, rule: check.Alias},
	{name: "a value over a live view", in: views, change: func(d *draft) { d.move("p", "t", 0) }, rule: check.Read, text: "%t: bytes [64,128) of input 0"},
	{name: "the source of a view overwritten", in: views, change: func(d *draft) { d.move("p", "a", 0) }, rule: check.Read,
		text: `step 4 (test.print): %a: bytes [0,64) of input 0: got %p from its byte 0, want %a from its byte 0`},
	{name: "a result of its own in the bytes of its operand", in: views, change: func(d *draft) { d.move("r", "a", 0) }, rule: check.Alias, text: "may not overwrite"},

	// Rule 5.
	{name: "in place over a value that is read later", in: later, change: func(d *draft) { d.move("b", "a", 0) }, rule: check.Read},
	{name: "in place over a broadcast operand", in: broadcast, choose: shareNothing, change: func(d *draft) { d.move("b", "a", 0); d.move("c", "b", 0) }, rule: check.Read},
	{name: "in place over a broadcast operand alone", in: broadcast, choose: shareNothing, change: func(d *draft) { d.move("c", "b", 0) }, rule: check.Alias,
		text: "got bytes of operand 1 (%b, bytes [256,260) of the arena)"},
	{name: "in place over smaller elements", in: broadcast, choose: shareNothing, change: func(d *draft) { d.move("e", "d", 0) }, rule: check.Alias},
	{name: "smaller elements behind the beginning", in: broadcast, choose: shareNothing, change: func(d *draft) { d.move("d", "c", 64) }, rule: check.Alias, text: "the operator allows narrow"},
	{name: "in place at an offset", in: broadcast, choose: shareNothing, change: func(d *draft) { d.move("c", "a", 4) }, rule: check.Alias, text: "the operator allows same"},
	{name: "in place over an operand that is another one too", in: kinds, choose: shareNothing, change: func(d *draft) { d.move("b", "a", 0) }, rule: check.Alias, text: "operand 1 (%a"},
	{name: "accumulated over an operand that is another one too", in: kinds, choose: shareNothing, change: func(d *draft) { d.move("c", "b", 0) }, rule: check.Alias, text: "may not overwrite"},
	{name: "same over both operands at once", in: kinds, choose: shareNothing, change: func(d *draft) { d.move("d", "c", 0) }},
	{name: "in place where the operator is fresh", in: kinds, choose: shareNothing, change: func(d *draft) { d.move("e", "d", 0) }, rule: check.Alias},
	{name: "same and accumulate at once", in: `func @f(%x: f32[4]) -> (f32[4]) {
  %a = neg(%x)
  %b = test.both(%a, %a)
  %c = neg(%b)
  return %c
}`, choose: shareNothing, change: func(d *draft) { d.move("b", "a", 0) }, rule: check.Alias, text: "%a (same) and %a (accumulate)"},
	{name: "a view of what the operand has not", in: `func @f(%x: f32[4]) -> (f32[2]) {
  %a = neg(%x)
  %b = test.part(%a) {from = 3, size = 2}
  %c = neg(%b)
  return %c
}`, change: func(d *draft) {}, broken: true, rule: check.Alias, text: "bytes [12,20) of operand 0"},
	{name: "two results in the same bytes", in: twins, choose: shareNothing, change: func(d *draft) { d.move("b", "a", 64) }, broken: true, rule: check.Alias, text: "also those of result %a"},

	// Rule 5, of results that are put together.
	{name: "a part in its place", in: parts, choose: shareNothing, change: func(d *draft) { d.move("a", "c", 0) }},
	{name: "a part at the same offset of another space", in: `func @f(%x: f32[32]) -> (f32[64]) {
  %a = neg(%x)
  %b = relu(%x)
  %c = concat(%a, %b) {axis = 0}
  return %c
}`, choose: shareNothing, change: func(d *draft) { d.at("a").Offset, d.at("b").Offset = 0, 128 }},
	{name: "parts in each other's places", in: parts, choose: shareNothing, change: func(d *draft) { d.move("a", "c", 128); d.move("b", "c", 0) }, rule: check.Alias, text: "for a part that is written"},
	{name: "a part between two parts' places", in: parts, choose: shareNothing, change: func(d *draft) { d.move("a", "c", 64) }, rule: check.Alias, text: "operand 0 (%a"},
	{name: "a part computed over another one", in: parts, change: func(d *draft) { d.move("b", "a", 64) }, rule: check.Read, text: "%a"},
	{name: "a part that is read after its result is overwritten", in: parts, change: func(d *draft) { d.move("e", "c", 0) }, rule: check.Read, text: "got %e"},
	{name: "one value in the places of two parts", in: `func @f(%x: f32[32]) -> (f32[64]) {
  %a = neg(%x)
  %b = concat(%a, %a) {axis = 0}
  %c = relu(%b)
  return %c
}`, choose: shareNothing, change: func(d *draft) { d.move("a", "b", 128) }},
	{name: "a result that is put together in an input", in: `func @f(%x: f32[64]) -> (f32[64]) {
  %h, %t = split(%x) {axis = 0}
  %u = neg(%t)
  %b = concat(%h, %u) {axis = 0}
  %c = relu(%b)
  return %c
}`, choose: shareNothing, change: func(d *draft) { d.move("h", "x", 0); d.move("t", "x", 128); d.move("b", "x", 0) }, rule: check.Write, text: "an input that is not donated"},

	// Rule 6.
	{name: "a write into a weight", in: `func @f(%x: f32[32]) -> (f32[32]) {
  weight @w: f32[64]
  %h, %t = split(@w) {axis = 0}
  %y = add(%h, %t)
  return %y
}`, change: func(d *draft) { d.at("t").Space, d.at("t").Offset = plan.SpaceArena, 0 }, rule: check.Write, text: "%h"},
	{name: "a write into an input", in: chain, change: func(d *draft) { d.move("b", "x", 0) }, rule: check.Write, text: "an input that is not donated"},
	{name: "a write into an input that is dead", in: state, choose: shareNothing, change: func(d *draft) { d.move("y", "x", 0) }, rule: check.Write},
	{name: "a write into a donated input that is dead", in: state, choose: shareNothing, change: func(d *draft) { d.move("y", "s", 0) }},
	{name: "a write into a donated input that is read later", in: views, choose: shareNothing, change: func(d *draft) { d.move("a", "x", 0); d.move("r", "x", 0) }, rule: check.Alias},
	{name: "a temporary in the buffer of an output", in: chain, choose: shareNothing, change: func(d *draft) { d.move("b", "d", 0) }},

	// Rule 7.
	{name: "storage of one branch does not hold the result", in: choice, change: func(d *draft) { d.at("p").Offset += 1 << 12 }, rule: check.Branch,
		text: `step 2 (if): %p: bytes [`},
	{name: "the result lies where one branch left it", in: choice, change: func(d *draft) {
		d.at("p").Offset += 1 << 12
		d.move("r", "p", 0)
	}, rule: check.Branch, text: "%n"},
	{name: "one branch overwrites what is read later", in: choice, choose: shareNothing, change: func(d *draft) { d.move("m", "u", 0) }, rule: check.Read,
		text: `step 6 (add): %u: bytes [256,384) of the arena: got nothing, want %u from its byte 0`},
	{name: "one branch overwrites what the other reads", in: choice, choose: shareNothing, change: func(d *draft) { d.move("n", "a", 0); d.move("r", "a", 0); d.move("p", "a", 0) }},
	{name: "the result in an input", in: choice, change: func(d *draft) { d.move("r", "x", 0); d.move("n", "x", 0); d.move("p", "x", 0) }, rule: check.Write},
	{name: "a region that runs many times", in: `func @f(%x: f32[4]) -> (f32[4]) {
  %y = test.loop(%x) {
    %z = neg(%x)
    return %z
  }
  return %y
}`, change: func(*draft) {}, broken: true, rule: check.Branch, text: "may run many times"},
	{name: "two regions that run many times", in: `func @f(%x: f32[4]) -> (f32[4]) {
  %y = test.loops(%x) {
    %z = neg(%x)
    return %z
  } {
    %z2 = neg(%x)
    return %z2
  }
  return %y
}`, change: func(*draft) {}, broken: true, rule: check.Branch, text: "may run many times"},
	{name: "two results of a branch in the same bytes", in: `func @f(%x: f32[4], %c: bool[]) -> (f32[4]) {
  %r, %s = if(%c) {
    %y = neg(%x)
    return %y, %y
  } {
    %z = neg(%x)
    return %z, %z
  }
  %t = add(%r, %s)
  return %t
}`, change: func(d *draft) { d.move("r", "s", 0); d.move("y", "s", 0); d.move("z", "s", 0) }, broken: true, rule: check.Alias, text: "also those of result %r"},
	{name: "an input as the result of a branch", in: `func @f(%x: f32[4], %c: bool[]) -> (f32[4]) {
  %r = if(%c) {
    return %x
  } {
    return %x
  }
  %t = neg(%r)
  return %t
}`, change: func(d *draft) { d.move("r", "x", 0) }, broken: true, rule: check.Write},

	// Rule 8.
	{name: "an output in the arena", in: chain, change: func(d *draft) { d.at("d").Space = plan.SpaceArena }, rule: check.Output},
	{name: "an input as an output", in: `func @f(%x: f32[32]) -> (f32[32]) {
  return %x
}`, change: func(d *draft) {}, broken: true, rule: check.Output, text: "output 0 in bytes [0,128) of input 0"},
	{name: "a donated input as an output", in: `func @f(donate %x: f32[32]) -> (f32[32]) {
  return %x
}`, change: func(d *draft) {}},
	{name: "an output in another output", in: state, choose: shareNothing, change: func(d *draft) { d.move("n", "z", 0) }, rule: check.Output},
	{name: "an output in a donated input", in: state, choose: shareNothing, change: func(d *draft) { d.move("n", "s", 0) }},
	{name: "an output in a part of a donated input", in: `func @f(donate %x: f32[32]) -> (f32[16]) {
  %y = test.part(%x) {from = 16, size = 16}
  %z = neg(%y)
  return %z
}`, change: func(d *draft) { d.move("z", "y", 0) }, rule: check.Output, text: "output 0 in bytes [64,128) of input 0"},
	{name: "two outputs in one donated input", in: state, choose: shareNothing, change: func(d *draft) { d.move("n", "s", 0); d.move("z", "s", 0) }, rule: check.Output},
	{name: "one value as two outputs", in: `func @f(donate %x: f32[4]) -> (f32[4], f32[4]) {
  %y = neg(%x)
  return %y, %y
}`, change: func(d *draft) { d.move("y", "x", 0) }, broken: true, rule: check.Output, text: "bytes of output 0 (%y)"},
	{name: "an output overwritten after it is written", in: state, choose: shareNothing, change: func(d *draft) { d.move("y", "n", 0) }, rule: check.Output,
		text: `%n: bytes [0,128) of output 0: got %y from its byte 0, want %n from its byte 0`},

	// Rule 1.
	{name: "another model", in: chain, change: func(d *draft) { d.Model = strings.Repeat("0", 64) }, rule: check.Document, text: "the hash of the program"},
	{name: "a malformed document", in: chain, change: func(d *draft) { d.Threads = 0 }, keep: true, rule: check.Document, text: "threads"},
	{name: "another input type", in: chain, change: func(d *draft) { d.Shapes[0].Type = "f32[31]" }, rule: check.Document},
	{name: "an input that is donated", in: chain, change: func(d *draft) { d.Shapes[0].Donated = !d.Shapes[0].Donated }, rule: check.Document},
	{name: "an input type is missing", in: chain, change: func(d *draft) { d.Shapes = nil }, rule: check.Document},
	{name: "a wrong size", in: chain, change: func(d *draft) { d.at("b").Size = 64 }, rule: check.Document, text: `"b" of type "f32[32]" and 64 bytes`},
	{name: "a wrong type", in: chain, change: func(d *draft) { d.at("b").Type = "f32[16,2]" }, rule: check.Document},
	{name: "a wrong name", in: chain, change: func(d *draft) { d.at("b").Name = "a" }, rule: check.Document},
	{name: "a value is missing", in: chain, change: func(d *draft) { d.Steps[0].Reads, d.Steps[3].Reads, d.Values = nil, nil, d.Values[1:] }, keep: true, rule: check.Document, text: "id 2 as value 0 of the list"},
	{name: "a value too many", in: chain, change: func(d *draft) { d.Values = append(d.Values, plan.Value{ID: 77, Name: "y", Space: plan.SpaceInput}) }, keep: true, rule: check.Document, text: "got 7 values, want those of the program, 6"},
	{name: "another operator", in: chain, change: func(d *draft) { d.Steps[1].Op = "relu" }, rule: check.Document},
	{name: "another operand", in: chain, change: func(d *draft) { d.Steps[3].Reads = []int{d.at("x").ID, d.at("c").ID} }, rule: check.Document, text: "as reading values"},
	{name: "an operand is missing", in: chain, change: func(d *draft) { d.Steps[3].Reads = d.Steps[3].Reads[:1] }, rule: check.Document, text: "as reading values"},
	{name: "another node", in: chain, change: func(d *draft) { d.Steps[0].Node = "" }, rule: check.Document},
	{name: "a value without promise", in: chain, change: func(d *draft) { d.Unpromised = []plan.Unpromised{{Value: "b"}} }, rule: check.Document},

	// Rule 9.
	{name: "arena too small for the last block", in: chain, change: func(d *draft) { d.ArenaBytes -= 1 }, keep: true, rule: check.Document},
	{name: "arena larger than needed", in: chain, change: func(d *draft) { d.ArenaBytes += 64 }, keep: true, rule: check.Figure, text: "arena_bytes"},
	{name: "too few bytes for inputs and outputs", in: chain, change: func(d *draft) { d.IOBytes -= 1 }, keep: true, rule: check.Figure, text: "io_bytes 255, want 256"},
	{name: "an output in a donated input counted twice", in: state, change: func(d *draft) { d.move("n", "s", 0); d.InPlace = nil; d.ArenaBytes = max(d.ArenaBytes, 64) }, keep: true, rule: check.Figure, text: "io_bytes"},
	{name: "too few bytes of weights", in: chain, change: func(d *draft) { d.WeightBytes = 0 }, keep: true, rule: check.Figure, text: "weight_bytes"},
	{name: "a packed weight that is none", in: chain, change: func(d *draft) { d.Packed = []plan.Packed{{Weight: "x", ID: d.at("x").ID}} }, keep: true, rule: check.Document, text: "packed weight"},
	{name: "a weight packed twice", in: chain, change: func(d *draft) {
		w := d.at("w")
		d.Packed = []plan.Packed{{Weight: "w", ID: w.ID, Bytes: 8}, {Weight: "w", ID: w.ID, Bytes: 8}}
		d.WeightBytes += 16
	}, keep: true, rule: check.Document, text: "once"},
	{name: "a packed weight that takes nothing", in: chain, change: func(d *draft) { d.Packed = []plan.Packed{{Weight: "w", ID: d.at("w").ID, Bytes: 8}} }, keep: true, rule: check.Figure, text: "weight_bytes"},
	{name: "a weight unloaded in part", in: chain, change: func(d *draft) {
		d.Packed = []plan.Packed{{Weight: "w", ID: d.at("w").ID, Unloaded: 1}}
		d.WeightBytes--
	}, keep: true, rule: check.Figure, text: "1 bytes unloaded"},
	{name: "packed bytes that no number holds", in: chain, change: func(d *draft) { d.Packed = []plan.Packed{{Weight: "w", ID: d.at("w").ID, Bytes: plan.MaxBytes}} }, keep: true, rule: check.Figure, text: "largest possible"},
	{name: "a packed weight in place of its own bytes", in: chain, change: func(d *draft) {
		w := d.at("w")
		d.Packed = []plan.Packed{{Weight: "w", ID: w.ID, Bytes: 128, Unloaded: w.Size}}
		d.WeightBytes += 128 - w.Size
	}, keep: true},
	{name: "more bytes of weights than numbers hold", in: `func @f(%x: f32[4]) -> (f32[4]) {
  weight @u: c128[288230376151711744]
  weight @v: c128[288230376151711744]
  %y = neg(%x)
  return %y
}`, change: func(d *draft) { d.WeightBytes = 0 }, keep: true, broken: true, rule: check.Figure, text: "@v: got a sum of sizes"},
	{name: "scratch below what the operator declares", in: twins, change: func(d *draft) { d.Steps[3].Scratch, d.ScratchPerThread, d.ScratchBytes = 99, 99, 99 }, broken: true, rule: check.Figure,
		text: "step 3 (test.hungry): got 99 bytes of scratch, want at least the 100"},
	{name: "scratch above that of any step", in: chain, change: func(d *draft) { d.ScratchPerThread, d.ScratchBytes = 64, 64 }, rule: check.Figure, text: "scratch_per_thread 64, want 0"},
	{name: "a lower bound that nothing shows", in: later, choose: shareNothing, change: func(d *draft) { d.LowerBoundBytes++ }, keep: true, rule: check.Figure, text: "lower_bound_bytes"},
	{name: "a lower bound that is too low", in: later, change: func(d *draft) { d.LowerBoundBytes-- }, keep: true, rule: check.Figure, text: "lower_bound_bytes"},
	{name: "a peak that is too low", in: later, change: func(d *draft) { d.Peak.Bytes -= 64 }, keep: true, rule: check.Figure, text: "peak bytes"},
	{name: "a peak that is too high", in: later, choose: shareNothing, change: func(d *draft) { d.Peak.Bytes += 64 }, keep: true, rule: check.Figure, text: "peak bytes"},
	{name: "a peak at another step", in: later, change: func(d *draft) { d.Peak.Step = 0; d.at("b").Start = 0; d.at("c").Start = 0 }, keep: true, rule: check.Figure, text: "the life [0,"},
	{name: "a peak that does not add up", in: later, change: func(d *draft) { d.Peak.Live = d.Peak.Live[1:] }, keep: true, rule: check.Figure, text: "live at the peak"},
	{name: "lives that are not true", in: later, change: func(d *draft) {
		for i := range d.Values {
			d.Values[i].Start, d.Values[i].End = 0, d.LastTime()
		}
	}, keep: true, rule: check.Figure, text: "the life"},

	// Rule 10.
	{name: "a claim for another call", in: later, change: func(d *draft) { d.InPlace[0].Call++ }, keep: true, rule: check.Claim},
	{name: "a claim for no call", in: later, change: func(d *draft) { d.InPlace[0].Call = 4 }, keep: true, rule: check.Claim},
	{name: "a claim for no operand", in: later, change: func(d *draft) { d.InPlace[0].Operand = 2 }, keep: true, rule: check.Claim},
	{name: "a claim of another kind", in: later, change: func(d *draft) { d.InPlace[0].Kind = plan.AliasUpdate }, keep: true, rule: check.Claim, text: "update of operand 0 (%b)"},
	{name: "a claim with other bytes", in: later, change: func(d *draft) { d.InPlace[0].Bytes = 0 }, keep: true, rule: check.Claim},
	{name: "a claim of what lies elsewhere", in: chain, choose: shareNothing, change: func(d *draft) {
		d.InPlace = []plan.InPlace{{Call: 2, Value: "c", Of: "b", Kind: plan.AliasSame, Bytes: 128}}
	}, keep: true, rule: check.Claim, text: "want it 0 bytes into %b"},
	{name: "a claim of another value", in: later, change: func(d *draft) { d.InPlace[0].Of = "a" }, keep: true, rule: check.Claim, text: `want "c" in "b"`},
	{name: "a claim across spaces", in: state, choose: shareNothing, change: func(d *draft) {
		d.InPlace = []plan.InPlace{{Call: 1, Value: "n", Of: "s", Kind: plan.AliasSame, Bytes: 128}}
	}, keep: true, rule: check.Claim, text: "bytes [0,128) of output 0, want it 0 bytes into %s"},
	{name: "a claim of a part less", in: parts, change: func(d *draft) { d.InPlace = d.InPlace[1:] }, keep: true, rule: check.Claim, text: "where it is a part of the result"},
	{name: "a claim of a part with other bytes", in: parts, change: func(d *draft) { d.InPlace[0].Bytes = 256 }, keep: true, rule: check.Claim, text: "with the part"},
	{name: "a claim of a part that lies elsewhere", in: parts, choose: shareNothing, change: func(d *draft) {
		d.InPlace = []plan.InPlace{{Call: 2, Value: "c", Of: "a", Kind: plan.AliasPart, Bytes: 128}}
	}, keep: true, rule: check.Claim, text: "lies where it is in the result"},
	{name: "a claim of a part as a view", in: parts, change: func(d *draft) { d.InPlace[0].Kind = plan.AliasView }, keep: true, rule: check.Claim},
	{name: "a declined part that lies in its place", in: parts, change: func(d *draft) {
		d.Declined = []plan.Declined{{Call: 2, Op: "concat", Value: "a", Bytes: 128}}
	}, keep: true, rule: check.Claim, text: "as declined"},
	{name: "a declined part", in: parts, choose: shareNothing, change: func(d *draft) {
		d.Declined = []plan.Declined{{Call: 2, Op: "concat", Value: "a", Bytes: 128}}
	}, keep: true},
	{name: "a claim less", in: later, change: func(d *draft) { d.InPlace = d.InPlace[1:] }, keep: true, rule: check.Claim, text: "no entry in its place"},
}
