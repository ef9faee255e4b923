package conformance_test

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
)

// movement sums the bytes that runs moved as their plans say.
type movement struct{ bytes int64 }

// run runs a session once, and compares the bytes that each call moves and does
// not compute, counted from the addresses that its kernel gets, with those that
// the plan says. Calls whose sizes are known only then have no bytes in a plan.
func (m *movement) run(s *tenure.Session, in tenure.Inputs) (tenure.Outputs, error) {
	planned, err := s.PlanFor(context.Background(), in)
	if err != nil {
		return nil, err
	}
	var profile tenure.Profile
	var calls []*ir.Call
	out, err := s.Run(context.Background(), in, tenure.WithProfile(&profile), tenure.Watch(func(c *ir.Call, _ time.Duration) { calls = append(calls, c) }))
	if err != nil {
		return nil, err
	}
	steps := profile.Steps()
	if len(steps) != len(calls) {
		out.Release()
		return nil, fmt.Errorf("got %d steps and %d calls, want as many", len(steps), len(calls))
	}
	for i, c := range calls {
		if !c.Op.Moves() || len(c.Regions) > 0 || !c.Sig(nil).IsStatic() {
			continue
		}
		want := planned.Steps[steps[i].Step].Moved
		if steps[i].Written != want {
			out.Release()
			return nil, fmt.Errorf("%s: got %d bytes moved, want %d as the plan says", c, steps[i].Written, want)
		}
		m.bytes += want
	}
	return out, nil
}
