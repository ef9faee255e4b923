package pass

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// DCE removes calls and weights whose results are not read.
//
// Requires: nothing. Guarantees: every call that remains is impure or has a
// result that is read, optional results that are not read are dropped, and
// every weight of the program is read by some call or is a result.
//
// The program's parameters stay: they are its interface.
var DCE = Pass{Name: "dce", Doc: "remove what is not read", Run: dce}

func dce(ctx *Context) error {
	p := ctx.Program
	read := map[*ir.Value]bool{}
	sweepDead(p.Body, read)
	kept := p.Weights[:0]
	for _, w := range p.Weights {
		if read[w] {
			kept = append(kept, w)
		}
	}
	clear(p.Weights[len(kept):])
	p.Weights = kept
	return nil
}

// sweepDead walks the block backwards, so that a call is met after all its
// readers, and keeps the calls that are read.
func sweepDead(b *ir.Block, read map[*ir.Value]bool) {
	for _, v := range b.Results {
		read[v] = true
	}
	kept := len(b.Calls)
	for i := len(b.Calls) - 1; i >= 0; i-- {
		c := b.Calls[i]
		needed := c.Op.Impure
		for _, r := range c.Results {
			needed = needed || r != nil && read[r]
		}
		if !needed {
			continue
		}
		dropResults(c, read)
		for _, region := range c.Regions {
			sweepDead(region, read)
		}
		for _, a := range c.Args {
			if a.Value != nil {
				read[a.Value] = true
			}
		}
		kept--
		b.Calls[kept] = c
	}
	b.Calls = append([]*ir.Call(nil), b.Calls[kept:]...)
}

// dropResults drops optional results at the end that are not read. Where any
// number is allowed, their number is part of the call's meaning.
func dropResults(c *ir.Call, read map[*ir.Value]bool) {
	if c.Op.MaxResults == op.Variadic {
		return
	}
	for n := len(c.Results); n > max(c.Op.MinResults, 1) && !read[c.Results[n-1]]; n-- {
		c.Results = c.Results[:n-1]
	}
}
