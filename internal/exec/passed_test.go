package exec_test

import (
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// passedInPlace are programs in which branches and loops take the bytes of
// values from outside, and others in which they must not.
var passedInPlace = []struct {
	name, text string
	arena      int64 // bytes
	inInput    int   // output 0 comes back in this input, -1 for none
}{
	{"both regions overwrite a value", `func @f(%c: bool[], %x: f32[256]) -> (f32[256]) {
  %a = neg(%x)
  %r = if(%c) {
    %y = relu(donate %a)
    return %y
  } {
    %z = neg(donate %a)
    return %z
  }
  %s = softmax(%r) {axis = 0}
  return %s
}`, 1 << 10, -1},
	{"chains, a copy and a nested branch", `func @f(%c: bool[], %d: bool[], %x: f32[256]) -> (f32[256]) {
  %a = neg(%x)
  %r = if(%c) {
    %e = exp(donate %a)
    %q = if(%d) {
      %m = relu(donate %e)
      %n = neg(donate %m)
      return %n
    } {
      %o = copy(donate %e)
      return %o
    }
    %y = abs(donate %q)
    return %y
  } {
    %z = copy(donate %a)
    return %z
  }
  %s = softmax(%r) {axis = 0}
  return %s
}`, 1 << 10, -1},
	{"one region reads the value in another way", `func @f(%c: bool[], %x: f32[256]) -> (f32[256]) {
  %a = neg(%x)
  %r = if(%c) {
    %y = relu(donate %a)
    return %y
  } {
    %z = reduce_sum(%a) {keepdims = 1}
    %w = add(%z, %x)
    return %w
  }
  %s = softmax(%r) {axis = 0}
  return %s
}`, 2<<10 + 64, -1},
	{"a branch overwrites a donated input", `func @f(%c: bool[], donate %x: f32[256]) -> (f32[256]) {
  %r = if(%c) {
    %y = relu(donate %x)
    return %y
  } {
    %z = neg(donate %x)
    return %z
  }
  return %r
}`, 0, 1},
	{"halves change places", `func @f(%c: bool[], %x: f32[512]) -> (f32[256], f32[256]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %r, %q = if(%c) {
    %y = relu(donate %h)
    %w = exp(donate %t)
    return %y, %w
  } {
    %z = neg(donate %t)
    %v = abs(donate %h)
    return %z, %v
  }
  %s = softmax(%r) {axis = 0}
  %u = softmax(%q) {axis = 0}
  return %s, %u
}`, 4 << 10, -1},
	{"halves stay", `func @f(%c: bool[], %x: f32[512]) -> (f32[256], f32[256]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %r, %q = if(%c) {
    %y = relu(donate %h)
    %w = exp(donate %t)
    return %y, %w
  } {
    %v = abs(donate %t)
    %z = neg(donate %h)
    return %z, %v
  }
  %s = softmax(%r) {axis = 0}
  %u = softmax(%q) {axis = 0}
  return %s, %u
}`, 2 << 10, -1},
	{"an output in half of a value", `func @f(%c: bool[], %x: f32[512]) -> (f32[256]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %r = if(%c) {
    %y = relu(donate %h)
    return %y
  } {
    %z = neg(donate %h)
    return %z
  }
  return %r
}`, 2 << 10, -1},
	{"a value that is put together of parts", `func @f(%c: bool[], %x: f32[128]) -> (f32[256]) {
  %k = neg(%x)
  %l = exp(%x)
  %a = concat(%k, %l) {axis = 0}
  %r = if(%c) {
    %y = relu(donate %a)
    return %y
  } {
    %z = neg(donate %a)
    return %z
  }
  %s = softmax(%r) {axis = 0}
  return %s
}`, 1 << 10, -1},
	{"the state of a loop begins in the bytes of its first value", `func @f(%x: f32[256]) -> (f32[256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %r = loop(@i64_3, _, donate %a) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = add(%x, donate %p)
    %c2 = copy(%c)
    return %c2, %y
  }
  %s = softmax(%r) {axis = 0}
  return %s
}`, 1<<10 + 3*64, -1},
	{"a donated input is the first state", `func @f(donate %x: f32[256]) -> (f32[256]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _, donate %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = neg(donate %p)
    %c2 = copy(%c)
    return %c2, %y
  }
  return %r
}`, 3 * 64, 0},
	{"the next state lies elsewhere", `func @f(donate %x: f32[256]) -> (f32[256]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _, donate %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %z = reduce_sum(%p) {keepdims = 1}
    %y = add(%z, %p)
    %c2 = copy(%c)
    return %c2, %y
  }
  return %r
}`, 1<<10 + 3*64, 0},
	{"a loop of no iterations", `func @f(donate %x: f32[256]) -> (f32[256]) {
  weight @i64_0: i64[]
  %r = loop(@i64_0, _, donate %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = neg(donate %p)
    %c2 = copy(%c)
    return %c2, %y
  }
  return %r
}`, 3 * 64, 0},
	{"carried as it is", `func @f(%x: f32[256]) -> (f32[256], f32[256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %b = exp(%x)
  %r, %q = loop(@i64_3, _, donate %a, donate %b) (%i: i64[], %c: bool[], %p: f32[256], %o: f32[256]) {
    %y = copy(donate %p)
    %z = neg(donate %o)
    %c2 = copy(%c)
    return %c2, %y, %z
  }
  %s = softmax(%r) {axis = 0}
  %u = softmax(%q) {axis = 0}
  return %s, %u
}`, 2<<10 + 3*64, -1},
	{"states change places", `func @f(%x: f32[256]) -> (f32[256], f32[256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %b = exp(%x)
  %r, %q = loop(@i64_3, _, donate %a, donate %b) (%i: i64[], %c: bool[], %p: f32[256], %o: f32[256]) {
    %y = neg(donate %o)
    %z = neg(donate %p)
    %c2 = copy(%c)
    return %c2, %y, %z
  }
  %s = softmax(%r) {axis = 0}
  %u = softmax(%q) {axis = 0}
  return %s, %u
}`, 4<<10 + 3*64, -1},
	{"halves are carried", `func @f(%x: f32[512]) -> (f32[256], f32[256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0, num_outputs = 2}
  %r, %q = loop(@i64_3, _, donate %t, donate %h) (%i: i64[], %c: bool[], %p: f32[256], %o: f32[256]) {
    %y = neg(donate %p)
    %z = exp(donate %o)
    %c2 = copy(%c)
    return %c2, %y, %z
  }
  %s = softmax(%r) {axis = 0}
  %u = softmax(%q) {axis = 0}
  return %s, %u
}`, 2<<10 + 3*64, -1},
	{"a loop in a loop, and a branch in both", `func @f(%d: bool[], donate %x: f32[256]) -> (f32[256]) {
  weight @i64_3: i64[]
  weight @i64_2: i64[]
  %r = loop(@i64_3, _, donate %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %m = neg(donate %p)
    %q = loop(@i64_2, _, donate %m) (%i2: i64[], %c3: bool[], %o: f32[256]) {
      %y = if(%d) {
        %u = relu(donate %o)
        return %u
      } {
        %v = neg(donate %o)
        return %v
      }
      %c4 = copy(%c3)
      return %c4, %y
    }
    %z = if(%d) {
      %u2 = neg(donate %q)
      return %u2
    } {
      %v2 = loop(@i64_2, _, donate %q) (%i3: i64[], %c5: bool[], %k: f32[256]) {
        %w = abs(donate %k)
        %c6 = copy(%c5)
        return %c6, %w
      }
      return %v2
    }
    %c2 = copy(%c)
    return %c2, %z
  }
  return %r
}`, 5 * 64, 1},
	{"a stack beside the state", `func @f(%x: f32[256]) -> (f32[256], f32[3,256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %r, %t = loop(@i64_3, _, donate %a) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = add(%x, donate %p)
    %z = copy(%y)
    %c2 = copy(%c)
    return %c2, %y, %z
  }
  %s = softmax(%r) {axis = 0}
  return %s, %t
}`, 1<<10 + 3*64, -1},
}

func TestPassedInPlace(t *testing.T) {
	for _, test := range passedInPlace {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, test.text)
			for seed := range uint64(4) {
				d := runBoth(t, p, seed)
				inInput := -1
				if at := entry(d, p.Body.Results[0].Name); at.Space == plan.SpaceInput {
					inInput = at.Arg
				}
				if d.ArenaBytes != test.arena || inInput != test.inInput {
					t.Fatalf("got an arena of %d bytes and output 0 in input %d, want %d, %d", d.ArenaBytes, inInput, test.arena, test.inInput)
				}
			}
		})
	}
}

// Harmful changes to plans of branches and loops in place are found.
func TestPassedInPlaceIsProved(t *testing.T) {
	const looped = `func @f(%x: f32[256], %z: f32[256]) -> (f32[256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %b = exp(%x)
  %r, %q = loop(@i64_3, _, donate %a, %b) (%i: i64[], %c: bool[], %p: f32[256], %o: f32[256]) {
    %y = add(%b, donate %p)
    %c2 = copy(%c)
    %k = neg(donate %o)
    return %c2, %y, %k
  }
  %t = add(%r, %q)
  %s = softmax(%t) {axis = 0}
  return %s
}`
	const branched = `func @f(%c: bool[], donate %x: f32[256]) -> (f32[256]) {
  %a = neg(%x)
  %r = if(%c) {
    %y = relu(donate %a)
    return %y
  } {
    %z = neg(donate %a)
    return %z
  }
  %s = add(%r, %x)
  %u = softmax(%s) {axis = 0}
  return %u
}`
	move := func(to string, names ...string) func(*plan.Plan) {
		return func(d *plan.Plan) {
			at := *entry(d, to)
			for _, name := range names {
				x := entry(d, name)
				x.Space, x.Arg, x.Offset = at.Space, at.Arg, at.Offset
			}
		}
	}
	for _, c := range []struct {
		name, text string
		want       check.Rule // "" for a plan that holds
		harm       func(d *plan.Plan)
	}{
		{"a loop as made", looped, "", func(*plan.Plan) {}},
		{"the state lies in a first value that every iteration reads", looped, check.Read, move("b", "o", "q", "k")},
		{"the state lies in another state's first value", looped, check.Alias, move("b", "p", "r", "y")},
		{"the state lies in the limit's space behind its first value", looped, check.Alias, func(d *plan.Plan) {
			for _, name := range []string{"p", "r", "y"} {
				entry(d, name).Offset += 64
			}
		}},
		{"the state lies in an input that is not donated", looped, check.Write, move("x", "a", "p", "r", "y")},
		{"the result lies elsewhere", looped, check.Branch, move("b", "r")},
		{"two states in the same bytes", looped, check.Alias, move("p", "o", "q", "k")},
		{"a branch as made", branched, "", func(*plan.Plan) {}},
		{"a branch overwrites what is read later", branched, check.Read, move("x", "a", "r", "y", "z")},
		{"one region leaves its result elsewhere", branched, check.Branch, func(d *plan.Plan) { entry(d, "z").Space, entry(d, "z").Arg = plan.SpaceOutput, 0 }},
		{"the result lies elsewhere than in both regions", branched, check.Branch, func(d *plan.Plan) { entry(d, "r").Space, entry(d, "r").Arg = plan.SpaceOutput, 0 }},
		{"no entry among the results in place", looped, check.Claim, func(d *plan.Plan) {
			d.InPlace = slices.DeleteFunc(slices.Clone(d.InPlace), func(x plan.InPlace) bool { return x.Value == "r" })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, c.text)
			weights := weightsFor(p)
			if err := ir.Infer(p, ir.Known(weights)); err != nil {
				t.Fatal(err)
			}
			exe, _, _ := start(t, p, weights)
			wantFault(t, exe, weights, breaks(c.want), func(d *plan.Plan) {
				if c.harm(d); c.want != "" && c.want != check.Claim {
					d.Peak.Live = nil
				}
			})
		})
	}
}

// What a region returns is one piece, also where it is a part of rows.
func TestRegionResultsAreOnePiece(t *testing.T) {
	for _, returned := range []string{"%a, %b", "%b, %a"} {
		states, results := "f32[2,128]", "f32[2,128], f32[3,2,256]"
		first := "%x"
		if returned == "%b, %a" {
			states, results, first = "f32[2,256]", "f32[2,256], f32[3,2,128]", "%z"
		}
		runBoth(t, parse(t, `func @f(%x: f32[2,128], %y: f32[2,128], %z: f32[2,256]) -> (`+results+`) {
  weight @i64_3: i64[]
  %r, %s = loop(@i64_3, _, `+first+`) (%i: i64[], %c: bool[], %p: `+states+`) {
    %a = tanh(%x)
    %b = concat(%a, %y) {axis = 1}
    %c2 = copy(%c)
    return %c2, `+returned+`
  }
  return %r, %s
}`), 1)
	}
}
