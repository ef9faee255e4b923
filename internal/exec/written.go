package exec

import "github.com/tenure-go/tenure/ir"

// WritersOf lists the calls that may have written into the bytes of parameter
// i, in a run that got as far as call last. The whole body of a loop in which
// that call is counts: an earlier iteration ran it.
func (e *Executable) WritersOf(i, last int) (calls []*ir.Call) {
	last = e.endOfLoop(last)
	for k := range min(last+1, len(e.steps)) {
		s := &e.steps[k]
		if !s.writes {
			continue
		}
		for n := range s.call.Results {
			if r := e.ref(k, len(s.call.Args)+n); r.space == inputSpace && int(r.arg) == i {
				calls = append(calls, s.call)
				break
			}
		}
	}
	return calls
}

// InPlace reports whether the first result of a call of the program lies in the
// bytes of its first operand.
func (e *Executable) InPlace(c *ir.Call) bool {
	for k := range e.steps {
		if e.steps[k].call == c {
			in, out := e.ref(k, 0), e.ref(k, len(c.Args))
			return in.space == out.space && in.arg == out.arg && in.offset == out.offset
		}
	}
	return false
}

// LastCall returns the number of the program's last call, in preorder.
func (e *Executable) LastCall() int { return len(e.steps) - 1 }

// endOfLoop returns the last call of the outermost loop that call k is in, and
// k for one that is in no loop.
func (e *Executable) endOfLoop(k int) int {
	for first := 0; first <= k && first < len(e.steps); first++ {
		c := e.steps[first].call
		if !c.Op.Loop {
			continue
		}
		end := first + callsWithin(c)
		if k <= end {
			return end
		}
		first = end
	}
	return k
}

// callsWithin counts the calls of a call's regions, and theirs.
func callsWithin(c *ir.Call) (n int) {
	for _, region := range c.Regions {
		for _, inner := range region.Calls {
			n += 1 + callsWithin(inner)
		}
	}
	return n
}
