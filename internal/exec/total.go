package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// mostBytes bounds the values of a program, so that no sum of their sizes,
// rounded up to blocks, overflows. No machine has as much.
const mostBytes = plan.MaxBytes / 4

// checkTotal checks that all values together take mostBytes at most.
func (l *lowering) checkTotal() error {
	total := int64(0)
	add := func(size int64) error {
		if size > mostBytes-total {
			return fmt.Errorf("compile: the values take more than %d bytes, want at most that: %w", int64(mostBytes), tensor.ErrLimit)
		}
		total += size
		return nil
	}
	for _, list := range [][]*ir.Value{l.program.Body.Params, l.program.Weights} {
		for _, v := range list {
			if err := add(l.of(v).size); err != nil {
				return err
			}
		}
	}
	for _, s := range l.storages { // outputs among them
		if err := add(s.size); err != nil {
			return err
		}
	}
	return nil
}
