package ir

import "github.com/tenure-go/tenure/op"

// RootOf follows views down to the value that owns the bytes of v, and reports
// whether v is all of them. sig returns the signature of the call that defines
// a value. A result of a call whose sizes depend on data owns its bytes:
// whether it is a view is known when the call runs.
func RootOf(v *Value, sig func(*Value) *op.Sig) (root *Value, whole bool) {
	whole = true
	for v.Def != nil {
		s := sig(v)
		if !s.IsStatic() {
			break
		}
		arg, offset := s.ViewOf(v.Index)
		if arg < 0 {
			break
		}
		n, _ := s.Results[v.Index].Bytes()
		m, _ := s.Args[arg].Bytes()
		v, whole = v.Def.Args[arg].Value, whole && offset == 0 && n == m
	}
	return v, whole
}

// ResultFaults says of each result of the program why it has no bytes of its
// own, as a program that is executed needs it: it is "" for one that has. sig
// is that of [RootOf].
func ResultFaults(p *Program, sig func(*Value) *op.Sig) []string {
	faults := make([]string, len(p.Body.Results))
	taken := map[*Value]bool{} // roots in whose bytes a result lies
	for i, v := range p.Body.Results {
		root, whole := RootOf(v, sig)
		switch {
		case root.Kind == Weight:
			faults[i] = "the output is a weight"
		case root.Kind == Param && !root.Donated:
			faults[i] = "the output is an input that was not donated"
		case taken[root]:
			faults[i] = "the output shares its bytes with another output"
		case !whole:
			faults[i] = "the output is a part of a larger value"
		default:
			taken[root] = true
		}
	}
	return faults
}

// RegionFaults is [ResultFaults] for the region of a branch, whose results
// become those of the call around it.
func RegionFaults(region *Block, sig func(*Value) *op.Sig) []string {
	own := map[*Value]bool{} // results of the region's calls, true until the region returns them
	for _, c := range region.Calls {
		for _, v := range c.Results {
			if v != nil {
				own[v] = true
			}
		}
	}
	faults := make([]string, len(region.Results))
	for i, v := range region.Results {
		unused, computed := own[v]
		switch {
		case !computed:
			faults[i] = "the region does not compute what it returns"
		case !unused:
			faults[i] = "the region returns a value twice"
		case isView(sig(v), v.Index):
			faults[i] = "the region returns a view"
		default:
			own[v] = false
		}
	}
	return faults
}

func isView(s *op.Sig, result int) bool {
	if !s.IsStatic() {
		return false
	}
	arg, _ := s.ViewOf(result)
	return arg >= 0
}
