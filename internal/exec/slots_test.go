package exec_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// The parts of stacked results are computed where they are in them.
var slotPrograms = []struct {
	name, text string
	arena      int64
	in         map[string]string // the stack in whose slot a value lies, "" for another place
}{
	{"a part", `func @f(%x: f32[256]) -> (f32[3,256]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %y = add(%x, %n)
    return %c, %y
  }
  return %r
}`, 3 * 64, map[string]string{"y": "r", "n": ""}},
	{"a chain in place", `func @f(%x: f32[256]) -> (f32[3,256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %u = add(%a, %n)
    %v = neg(donate %u)
    %y = tanh(donate %v)
    return %c, %y
  }
  return %r
}`, 1<<10 + 3*64, map[string]string{"u": "r", "v": "r", "y": "r"}},
	{"a view of a part, copied", `func @f(%x: f32[256]) -> (f32[3,16,16]) {
  weight @i64_3: i64[]
  weight @ints_16_16: i64[2]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %u = add(%x, %n)
    %v = reshape(%u, @ints_16_16)
    %y = copy(donate %v)
    return %c, %y
  }
  return %r
}`, 3 * 64, map[string]string{"u": "r", "v": "r", "y": "r"}},
	{"a state in another place", `func @f(%x: f32[256]) -> (f32[256], f32[3,256]) {
  weight @i64_3: i64[]
  %r, %s = loop(@i64_3, _, %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = add(%x, %p)
    %z = neg(%p)
    return %c, %y, %z
  }
  return %r, %s
}`, 1<<10 + 2*64, map[string]string{"y": "", "z": "s"}},
	{"a state that is stacked", `func @f(%x: f32[256]) -> (f32[256], f32[3,256]) {
  weight @i64_3: i64[]
  %r, %s = loop(@i64_3, _, %x) (%i: i64[], %c: bool[], %p: f32[256]) {
    %y = add(%x, donate %p)
    return %c, %y, %y
  }
  return %r, %s
}`, 2 * 64, map[string]string{"y": ""}},
	{"a value that is stacked twice", `func @f(%x: f32[256]) -> (f32[3,256], f32[3,256]) {
  weight @i64_3: i64[]
  %r, %s = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %y = add(%x, %n)
    return %c, %y, %y
  }
  return %r, %s
}`, 3 * 64, map[string]string{"y": "r"}},
	{"a part of a part, and a view of it that is carried", `func @f(%x: f32[256]) -> (f32[2,128], f32[3,128], f32[3,256]) {
  weight @i64_3: i64[]
  weight @ints_2_128: i64[2]
  %a = reshape(%x, @ints_2_128)
  %r, %s, %t = loop(@i64_3, _, %a) (%i: i64[], %c: bool[], %p: f32[2,128]) {
    %n = reduce_sum(%p) {keepdims = 0}
    %y = add(%x, %n)
    %h, %l = split(%y) {axis = 0, num_outputs = 2}
    %v = reshape(%y, @ints_2_128)
    return %c, %v, %l, %y
  }
  return %r, %s, %t
}`, 3 * 64, map[string]string{"y": "t", "l": "t", "v": "t"}},
	{"a value from outside", `func @f(%x: f32[256]) -> (f32[3,256]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    return %c, %a
  }
  return %r
}`, 1<<10 + 2*64, map[string]string{"a": ""}},
	{"a stack of stacks", `func @f(%x: f32[256]) -> (f32[3,2,256]) {
  weight @i64_3: i64[]
  weight @i64_2: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %m = cast(%i) {to = f32}
    %s = loop(@i64_2, _) (%j: i64[], %d: bool[]) {
      %n = cast(%j) {to = f32}
      %u = add(%m, donate %n)
      %y = add(%x, %u)
      return %d, %y
    }
    return %c, %s
  }
  return %r
}`, 6 * 64, map[string]string{"s": "r", "y": "s"}},
	{"a branch", `func @f(%x: f32[256], %k: bool[]) -> (f32[3,256]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %y = if(%k) {
      %u = add(%x, %n)
      return %u
    } {
      %v = sub(%x, %n)
      return %v
    }
    return %c, %y
  }
  return %r
}`, 3 * 64, map[string]string{"y": "r", "u": "r", "v": "r"}},
	{"final states of a loop in a loop", `func @f(%x: f32[256]) -> (f32[3,256]) {
  weight @i64_3: i64[]
  weight @i64_2: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %s = add(%x, %n)
    %y = loop(@i64_2, _, donate %s) (%j: i64[], %d: bool[], %p: f32[256]) {
      %q = neg(donate %p)
      return %d, %q
    }
    return %c, %y
  }
  return %r
}`, 1<<10 + 4*64, map[string]string{"y": "r", "p": "r", "q": "r", "s": ""}},
	{"a number of iterations that a run knows", `func @f(%x: f32[256]) -> (f32[?,256]) {
  %l = non_zero(%x)
  %k = size(%l)
  %r = loop(%k, _) (%i: i64[], %c: bool[]) {
    %m = cast(%i) {to = f32}
    %u = add(%x, %m)
    %y = neg(donate %u)
    return %c, %y
  }
  return %r
}`, 2<<10 + 64, map[string]string{"u": "r", "y": "r"}},
	{"an early end", `func @f(%x: f32[256]) -> (f32[?,256]) {
  weight @i64_20: i64[]
  weight @i64_11: i64[]
  %r = loop(@i64_20, _) (%i: i64[], %c: bool[]) {
    %m = cast(%i) {to = f32}
    %y = add(%x, %m)
    %go = less(%i, @i64_11)
    return %go, %y
  }
  return %r
}`, 3 * 64, map[string]string{"y": "r"}},
	{"no limit", `func @f(%x: f32[256]) -> (f32[?,256]) {
  weight @i64_11: i64[]
  %r = loop(_, _) (%i: i64[], %c: bool[]) {
    %m = cast(%i) {to = f32}
    %y = add(%x, %m)
    %go = less(%i, @i64_11)
    return %go, %y
  }
  return %r
}`, 3 * 64, map[string]string{"y": "r"}},
	{"a stack of half bytes", `func @f(%x: i4[4]) -> (i4[3,4]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %y = copy(%x)
    return %c, %y
  }
  return %r
}`, 3 * 64, map[string]string{"y": ""}},
}

func TestStackedInSlots(t *testing.T) {
	for _, test := range slotPrograms {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, test.text)
			for seed := range uint64(4) {
				d := runBoth(t, p, seed)
				if d.ArenaBytes != test.arena {
					t.Errorf("got an arena of %d bytes, want %d", d.ArenaBytes, test.arena)
				}
				for name, stack := range test.in {
					at, want := entry(d, name), plan.SpaceSlot
					if stack == "" {
						if at.Space == want {
							t.Errorf("%s: got a slot of value %d, want another place", name, at.Arg)
						}
						continue
					}
					if at.Space != want || at.Arg != entry(d, stack).ID {
						t.Errorf("%s: got %s %d, want the slot of %s", name, at.Space, at.Arg, stack)
					}
				}
			}
		})
	}
}

// Harmful changes to plans with slots are found.
func TestSlotsAreProved(t *testing.T) {
	const text = `func @f(%x: f32[256], %z: f32[256]) -> (f32[256], f32[3,256], f32[3,256], f32[3,512]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %b = exp(%z)
  %r, %s, %t, %w = loop(@i64_3, _, donate %a) (%i: i64[], %c: bool[], %p: f32[256]) {
    %n = cast(%i) {to = f32}
    %u = add(%b, %n)
    %y = neg(donate %u)
    %v = tanh(%y)
    %h = sub(%v, %y)
    %k = add(%h, donate %p)
    %g = neg(%h)
    %l = concat(%g, %h) {axis = 0}
    return %c, %k, %y, %v, %l
  }
  %e = neg(%s)
  %f = neg(%t)
  %m = neg(%w)
  %o = neg(%r)
  return %o, %e, %f, %m
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
		name string
		want check.Rule // "" for a plan that holds
		harm func(d *plan.Plan)
	}{
		{"as made", "", func(*plan.Plan) {}},
		{"a part behind the beginning", check.Place, func(d *plan.Plan) { entry(d, "y").Offset += 4 }},
		{"a part elsewhere, and its operand in the slot", check.Place, move("h", "y")},
		{"a value that is read later is overwritten by the part", check.Read, move("v", "h", "g")},
		{"the part is overwritten", check.Branch, move("y", "g")},
		{"the part in the slot of another stack", check.Read, move("v", "y", "u")},
		{"two parts in one slot", check.Read, move("y", "v")},
		{"a small part in a large slot", check.Branch, move("l", "y", "u")},
		{"a value larger than the part", check.Place, move("y", "l")},
		{"loop state in a slot", check.Place, move("y", "p", "k", "r")},
		{"the number of the iteration in a slot", check.Place, move("y", "i")},
		{"a value from outside in a slot", check.Place, move("y", "b")},
		{"a result behind the loop in a slot", check.Place, move("y", "m")},
		{"a slot of what is no stack", check.Place, func(d *plan.Plan) { entry(d, "y").Arg = entry(d, "r").ID }},
		{"a slot of a value of the iteration", check.Place, func(d *plan.Plan) { entry(d, "y").Arg = entry(d, "h").ID }},
		{"a value of the iteration in the stack", check.Branch, move("s", "h")},
		{"an earlier part of the stack is overwritten", check.Branch, func(d *plan.Plan) { move("s", "h")(d); entry(d, "h").Offset += 1 << 10 }},
		{"the state in the stack", check.Alias, move("s", "p", "k", "r")},
		{"two stacks in the same bytes", check.Alias, move("s", "t")},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, text)
			weights := weightsFor(p)
			if err := ir.Infer(p, ir.Known(weights)); err != nil {
				t.Fatal(err)
			}
			exe, _, _ := start(t, p, weights)
			wantFault(t, exe, weights, breaks(c.want), func(d *plan.Plan) {
				if c.harm(d); c.want != "" {
					d.Peak.Live = nil
				}
			})
		})
	}
}

// What branches, loops and iterations compute lies where it is a part of
// another value.
func TestPassedParts(t *testing.T) {
	for _, test := range []struct {
		name, text string
		arena      int64
	}{
		{"an iteration's part is put together", `func @f(%x: f32[256]) -> (f32[3,512]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %u = add(%x, %n)
    %v = sub(%x, %n)
    %y = concat(%u, %v) {axis = 0}
    return %c, %y
  }
  return %r
}`, 3 * 64},
		{"an iteration's part is put together along another axis", `func @f(%x: f32[4,256]) -> (f32[3,4,512]) {
  weight @i64_3: i64[]
  %r = loop(@i64_3, _) (%i: i64[], %c: bool[]) {
    %n = cast(%i) {to = f32}
    %u = add(%x, %n)
    %v = sub(%x, %n)
    %y = concat(%u, %v) {axis = 1}
    return %c, %y
  }
  return %r
}`, 3 * 64},
		{"the result of a branch is a part", `func @f(%x: f32[256], %k: bool[]) -> (f32[512]) {
  %r = if(%k) {
    %u = neg(%x)
    return %u
  } {
    %v = exp(%x)
    return %v
  }
  %w = tanh(%x)
  %y = concat(%r, %w) {axis = 0}
  %z = softmax(%y) {axis = 0}
  return %z
}`, 2 << 10},
		{"the last state of a loop is a part", `func @f(%x: f32[256]) -> (f32[512]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %w = tanh(%x)
  %r = loop(@i64_3, _, donate %a) (%i: i64[], %c: bool[], %p: f32[256]) {
    %q = sub(donate %p, %x)
    return %c, %q
  }
  %y = concat(%w, %r) {axis = 0}
  %z = softmax(%y) {axis = 0}
  return %z
}`, 2<<10 + 2*64},
		{"a first state is put together", `func @f(%x: f32[256]) -> (f32[512]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %w = tanh(%x)
  %y = concat(%w, %a) {axis = 0}
  %r = loop(@i64_3, _, donate %y) (%i: i64[], %c: bool[], %p: f32[512]) {
    %q = neg(donate %p)
    return %c, %q
  }
  %z = softmax(%r) {axis = 0}
  return %z
}`, 2<<10 + 2*64},
		{"a part that a loop reads while it writes another one", `func @f(%x: f32[256]) -> (f32[512]) {
  weight @i64_3: i64[]
  %a = neg(%x)
  %w = tanh(%x)
  %r = loop(@i64_3, _, donate %a) (%i: i64[], %c: bool[], %p: f32[256]) {
    %q = sub(donate %p, %w)
    return %c, %q
  }
  %y = concat(%w, %r) {axis = 0}
  %z = softmax(%y) {axis = 0}
  return %z
}`, 2<<10 + 2*64},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := parse(t, test.text)
			for seed := range uint64(4) {
				if d := runBoth(t, p, seed); d.ArenaBytes != test.arena {
					for _, x := range d.Declined {
						t.Log(x)
					}
					t.Fatalf("got an arena of %d bytes, want %d", d.ArenaBytes, test.arena)
				}
			}
		})
	}
}
