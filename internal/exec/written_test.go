package exec

import (
	"slices"
	"testing"
)

// The writers of a parameter are the calls whose results lie in it; those of a
// loop's body have run before any other of its calls, in an earlier iteration.
func TestWritersOf(t *testing.T) {
	e := compiled(t, `func @main(donate %x: f32[64], donate %z: f32[64], %n: i64[]) -> (f32[64], f32[64]) {
		%c = constant() {dtype = bool, ints = [1]}
		%a = exp(donate %x)
		%b = tanh(donate %a)
		%s = loop(%n, %c, donate %z) (%i: i64[], %go: bool[], %v: f32[64]) {
			%p = neg(%v)
			%q = add(donate %p, %v)
			return %go, %q
		}
		return %b, %s
	}`, 1)
	for _, c := range []struct {
		param, last int
		want        []string
	}{{0, -1, nil}, {0, 0, nil}, {0, 1, []string{"exp"}}, {0, e.LastCall(), []string{"exp", "tanh"}}, {2, e.LastCall(), nil}} {
		if got := writerNames(e, c.param, c.last); !slices.Equal(got, c.want) {
			t.Errorf("parameter %d up to call %d: got %v, want %v", c.param, c.last, got, c.want)
		}
	}
	at := slices.IndexFunc(e.steps, func(s step) bool { return s.call.Op.Loop })
	if got, all := writerNames(e, 1, at+1), writerNames(e, 1, e.LastCall()); len(all) == 0 || !slices.Equal(got, all) {
		t.Errorf("in the loop: got %v, want those of all of its body, %v", got, all)
	}
	if got := writerNames(e, 1, at-1); got != nil {
		t.Errorf("before the loop: got %v, want none", got)
	}
}

func writerNames(e *Executable, param, last int) (names []string) {
	for _, c := range e.WritersOf(param, last) {
		names = append(names, c.Op.Name)
	}
	return names
}
