package pass

import (
	"encoding/binary"
	"fmt"

	"github.com/tenure-go/tenure/ir"
)

// CSE merges calls that compute the same from the same, and weights with the
// same small bytes. A constant that was computed from the inputs' sizes is not
// merged: whether its bytes are those of another one depends on the sizes.
//
// Requires: types are inferred. Guarantees: no two pure calls without regions
// have the same operator, attributes, operands and result types where one is
// visible at the other. It leaves the merged calls without readers (dce).
//
// A call with a donated operand is never merged: it consumes its operand.
var CSE = Pass{Name: "cse", Doc: "merge calls that compute the same", Run: cse}

func cse(ctx *Context) error {
	replaced := replacer{}
	mergeWeights(ctx, replaced)
	mergeCalls(ctx.Program.Body, replaced, []map[string]*ir.Call{})
	replaced.apply(ctx.Program.Body)
	return nil
}

func mergeWeights(ctx *Context, replaced replacer) {
	seen := map[string]*ir.Value{}
	for _, w := range ctx.Program.Weights {
		key, ok := ctx.mergeKey(w)
		if !ok {
			continue
		}
		if first := seen[key]; first != nil {
			replaced[w] = first
		} else {
			seen[key] = w
		}
	}
}

// mergeCalls walks the block with the calls seen in it and in the blocks
// around it; the values of a region are not visible after it.
func mergeCalls(b *ir.Block, replaced replacer, outer []map[string]*ir.Call) {
	seen := map[string]*ir.Call{}
	scopes := append(outer[:len(outer):len(outer)], seen)
	for _, c := range b.Calls {
		for i := range c.Args {
			c.Args[i].Value = replaced.of(c.Args[i].Value)
		}
		for _, region := range c.Regions {
			mergeCalls(region, replaced, scopes)
		}
		key := callKey(c)
		if key == "" {
			continue
		}
		if first := lookup(scopes, key); first != nil {
			for i, r := range c.Results {
				if r != nil {
					replaced[r] = first.Results[i]
				}
			}
			continue
		}
		seen[key] = c
	}
}

func lookup(scopes []map[string]*ir.Call, key string) *ir.Call {
	for _, s := range scopes {
		if c := s[key]; c != nil {
			return c
		}
	}
	return nil
}

// callKey returns what makes two calls the same, "" for a call that must not
// be merged.
func callKey(c *ir.Call) string {
	if c.Op.Impure || len(c.Regions) > 0 {
		return ""
	}
	key := []byte(c.Op.Name)
	for _, a := range c.Args {
		if a.Donate {
			return ""
		}
		id := 0
		if a.Value != nil {
			id = a.Value.ID
		}
		key = binary.AppendUvarint(append(key, '%'), uint64(id))
	}
	for _, a := range c.Attrs {
		key = fmt.Appendf(key, "|%s=%#v", a.Name, a.Value)
	}
	for _, r := range c.Results {
		if r == nil {
			key = append(key, "|_"...)
			continue
		}
		key = append(append(key, '|'), typeKey(r)...)
	}
	return string(key)
}
