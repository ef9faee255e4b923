package exec_test

import (
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/plan"
)

// passedOn are programs that pass values without a size on, in all ways: as
// views at an offset, from one holder to several, around a loop, out of
// branches, more than once. %m and %v of their heads are such values.
var passedOn = map[string]string{
	"a carried view at an offset": `func @f(%x: f32[4,6]) -> (i64[?]) {
		HEAD
		%r = loop(@i64_2, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = slice(%a, @one, @last, @axis)
			return %c2, %b
		}
		return %r
	}`,
	"a loop of no rounds whose state is an output too": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r = loop(@i64_0, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = neg(%a)
			return %c2, %b
		}
		return %v, %r
	}`,
	"a stack of views of what is carried": `func @f(%x: f32[4,6]) -> (i64[?,?,1]) {
		HEAD
		%r, %s = loop(@i64_3, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%b = neg(%a)
			%d = unsqueeze(%a, @one)
			return %c2, %b, %d
		}
		return %s
	}`,
	"appended in every round": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r = loop(@i64_3, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%w = neg(%v)
			%b = concat(%a, %w, %v) {axis = -1}
			return %c2, %b
		}
		%u = neg(%v)
		return %r, %u
	}`,
	"appended twice to one value": `func @f(%x: f32[4,6]) -> (i64[?], i64[?], i64[?]) {
		HEAD
		%r, %s, %t = loop(@i64_3, _, %v, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?], %g: i64[?]) {
			%c2 = copy(%c)
			%w = neg(%v)
			%d = concat(%a, %w) {axis = 0}
			%e = concat(%a, %v) {axis = 0}
			%h = neg(%a)
			%k = concat(%g, %h) {axis = 0}
			return %c2, %d, %e, %k
		}
		return %r, %s, %t
	}`,
	"appended while a view of it is carried": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r, %s = loop(@i64_3, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = concat(%a, %b) {axis = 0}
			%e = slice(%d, @one, @last, @axis)
			return %c2, %d, %e
		}
		return %r, %s
	}`,
	"appended in a loop within": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r, %s = loop(@i64_3, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = loop(@i64_2, _, %v) (%i2: i64[], %c3: bool[], %y: i64[?]) {
				%c4 = copy(%c3)
				%neg = neg(%y)
				%z = concat(%a, %neg) {axis = 0}
				return %c4, %z
			}
			%e = concat(%a, %b) {axis = 0}
			return %c2, %e, %d
		}
		return %r, %s
	}`,
	"carried as it is, unwanted": `func @f(%x: f32[4,6]) -> (i64[?]) {
		HEAD
		_, %r = loop(@i64_3, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = add(%a, %b)
			return %c2, %a, %d
		}
		return %r
	}`,
	"carried values change places": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%w = neg(%v)
		%r, %s = loop(@i64_3, _, %v, %w) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			return %c2, %b, %a
		}
		return %r, %s
	}`,
	"one value carried twice, stacked, and read after": `func @f(%x: f32[4,6]) -> (i64[?], i64[?], i64[?,?], i64[?]) {
		HEAD
		%r, %s, %k = loop(@i64_2, _, %v, %v) (%i: i64[], %c: bool[], %a: i64[?], %b: i64[?]) {
			%c2 = copy(%c)
			%d = add(%a, %b)
			return %c2, %d, %d, %d
		}
		%u = neg(%v)
		return %r, %s, %k, %u
	}`,
	"what stands outside is carried on": `func @f(%x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%w = neg(%v)
		%r = loop(@i64_3, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%d = add(%w, %a)
			return %c2, %w
		}
		%u = abs(%w)
		return %r, %u
	}`,
	"a branch gives a view of what stands outside": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?]) {
		HEAD
		%r = if(%c) {
			%a = slice(%v, @one, @last, @axis)
			return %a
		} {
			%b = neg(%v)
			return %b
		}
		return %r, %v
	}`,
	"a branch gives what stands outside, twice": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?], i64[?]) {
		HEAD
		%r, %s = if(%c) {
			%a = neg(%v)
			return %v, %v
		} {
			%b = abs(%v)
			return %b, %b
		}
		return %r, %s, %v
	}`,
	"a branch whose result is unused": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?]) {
		HEAD
		_, %s = if(%c) {
			%a = neg(%v)
			%b = abs(%v)
			return %a, %b
		} {
			%d = neg(%v)
			%e = neg(%d)
			return %d, %e
		}
		return %s
	}`,
	"a branch in a loop in a branch": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[?], i64[?,?], i64[?]) {
		HEAD
		%r, %s = if(%c) {
			%a = slice(%v, @one, @last, @axis)
			%q, %k = loop(@i64_3, _, %a) (%i: i64[], %c1: bool[], %p: i64[?]) {
				%c2 = copy(%c1)
				%odd = cast(%i) {to = bool}
				%d, %e = if(%odd) {
					%g = neg(%p)
					return %g, %a
				} {
					%h = slice(%p, @one, @last, @axis)
					return %h, %v
				}
				%o = abs(%e)
				%oo = slice(%o, @zero, @one, @axis)
				return %c2, %d, %oo
			}
			return %q, %k
		} {
			%b = unsqueeze(%v, @zero)
			return %v, %b
		}
		return %r, %s, %v
	}`,
	"loops in a loop": `func @f(%x: f32[4,6]) -> (i64[?], i64[?,?,?]) {
		HEAD
		%r, %s = loop(@i64_2, _, %v) (%i: i64[], %c: bool[], %a: i64[?]) {
			%c2 = copy(%c)
			%q, %k = loop(@i64_2, _, %a) (%j: i64[], %d: bool[], %b: i64[?]) {
				%d2 = copy(%d)
				%g = add(%b, %a)
				%h = slice(%b, @one, @last, @axis)
				return %d2, %g, %v
			}
			return %c2, %q, %k
		}
		return %r, %s
	}`,
	"a bounded value goes out of a branch, a loop and a stack": `func @f(%c: bool[], %x: f32[4,6]) -> (i64[2,?], i64[2,?], i64[?,2,?], i64[2,?]) {
		HEAD
		%r = if(%c) {
			return %n
		} {
			%b = non_zero(%x)
			return %b
		}
		%s, %k = loop(@i64_2, _, %n) (%i: i64[], %c1: bool[], %p: i64[2,?]) {
			%c2 = copy(%c1)
			%d = non_zero(%x)
			return %c2, %d, %p
		}
		return %r, %s, %k, %n
	}`,
	"parts of a split": `func @f(%x: f32[4,6]) -> (i64[1,?], i64[1,?], i64[1,?]) {
		HEAD
		%a, %b = split(%m) {axis = 0, num_outputs = 2}
		%d = neg(%a)
		%e = add(%d, %b)
		return %a, %b, %e
	}`,
	"carried without a size from bytes in which another value is carried": `func @f(%x: f32[4,6], %y: f32[3]) -> (f32[?], f32[3]) {
		HEAD
		%w = cast(%v) {to = f32}
		%r, %s = loop(@i64_3, _, %w, %y) (%i: i64[], %c: bool[], %a: f32[?], %b: f32[3]) {
			%c2 = copy(%c)
			%d = neg(donate %b)
			%e = exp(%d)
			return %c2, %d, %e
		}
		return %r, %s
	}`,
	"a stack of no rounds has the sizes that are declared": `func @f(%x: f32[4,6]) -> (i64[?,?,?], i64[?,?], i64[?]) {
		HEAD
		%s, %k = loop(@i64_0, _) (%i: i64[], %c: bool[]) {
			%c2 = copy(%c)
			return %c2, %m, %v
		} {parts = [2, 5, 3, 1, -1]}
		%z = shape(%s)
		%zz = concat(%z, @one) {axis = 0}
		return %s, %k, %zz
	}`,
	"a size in the last of many loops": `func @f(%x: f32[3]) -> (f32[3]) {
		weight @i64_1: i64[]
		weight @three: i64[1]
		weight @flat: i64[1]
		%r = loop(@i64_1, _, %x) (%i: i64[], %c: bool[], %a: f32[3]) {
			%c2 = copy(%c)
			%r1 = loop(@i64_1, _, %a) (%i1: i64[], %d: bool[], %a1: f32[3]) {
				%d2 = copy(%d)
				%r2 = loop(@i64_1, _, %a1) (%i2: i64[], %e: bool[], %a2: f32[3]) {
					%e2 = copy(%e)
					%r3 = loop(@i64_1, _, %a2) (%i3: i64[], %g: bool[], %a3: f32[?]) {
						%g2 = copy(%g)
						%n3 = neg(%a3)
						%b3 = reshape(%n3, @three)
						return %g2, %b3
					}
					%b2 = neg(%r3)
					return %e2, %b2
				}
				%b1 = neg(%r2)
				return %d2, %b1
			}
			%b = neg(%r1)
			return %c2, %b
		}
		return %r
	}`,
}

const heads = `weight @"i64_-1": i64[1]
		weight @zero: i64[1]
		weight @one: i64[1]
		weight @last: i64[1]
		weight @axis: i64[1]
		weight @i64_0: i64[]
		weight @i64_2: i64[]
		weight @i64_3: i64[]
		%n = non_zero(%x)
		%m = neg(%n)
		%v = reshape(%m, @"i64_-1")`

func TestPassedOn(t *testing.T) {
	for name, text := range passedOn {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				runBoth(t, parse(t, strings.Replace(text, "HEAD", heads, 1)), seed)
			}
		})
	}
}

// The plan's statements about values without a size are proved in loops too.
func TestPassedOnIsProved(t *testing.T) {
	const text = `func @f(%x: f32[4,6]) -> (i64[?], f32[3]) {
		HEAD
		%o = neg(%v)
		%r, %s = loop(@i64_2, _, %v, @w) (%i: i64[], %c: bool[], %a: i64[?], %b: f32[?]) {
			%c2 = copy(%c)
			%d = add(%a, %o)
			%e = neg(%d)
			%g = neg(%b)
			%h: f32[3] = reshape(%g, @three)
			return %c2, %e, %h
		}
		%u = neg(%s)
		return %r, %u
	}`
	head := strings.Replace(heads, "%n =", "weight @w: f32[3]\nweight @three: i64[1]\n%n =", 1)
	for _, c := range []struct {
		name string
		want check.Rule // "" for a plan that holds
		harm func(d *plan.Plan)
	}{
		{"as made", "", func(*plan.Plan) {}},
		{"what stands outside is freed in a round", check.Read, func(d *plan.Plan) {
			entry(d, "o").End -= 2 // its reader in the round has ended; the next round reads it again
		}},
		{"what is carried is freed in a round", check.Read, func(d *plan.Plan) { entry(d, "a").End -= 2 }},
		{"what a round carries on is freed before the round ends", check.Branch, func(d *plan.Plan) {
			entry(d, "e").End = entry(d, "e").Start + 1
		}},
		{"a result over what a round computes", check.Branch, func(d *plan.Plan) {
			entry(d, "s").Offset = entry(d, "c2").Offset
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, strings.Replace(text, "HEAD", head, 1))
			weights := weightsFor(p)
			weights["w"] = make([]byte, 12)
			exe, _, _ := start(t, p, weights)
			wantFault(t, exe, weights, breaks(c.want), c.harm)
		})
	}
}
