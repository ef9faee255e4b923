package solve

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tenure-go/tenure/plan"
)

// DefaultEffort is the budget of a search that names none: some fifty
// milliseconds.
const DefaultEffort = 25_000_000

// Options say how long Solve may look for a better placement once it has one.
// The zero value is a good choice.
type Options struct {
	// Effort is the work that the searches after the portfolio may spend, in
	// steps of a few nanoseconds. 0 stands for DefaultEffort, less than 0 for
	// none.
	Effort int64
	// Deadline ends the search by the clock, with the best placement so far;
	// the result then depends on the machine. The zero time stands for no
	// deadline.
	Deadline time.Time
}

// Solve returns the smallest placement that it finds for p in the given effort.
// It stops early at p.LowerBound. The error is a fault of p (plan.ErrProblem),
// or that of ctx where it is done before the search.
func Solve(ctx context.Context, p *plan.Problem, o Options) (plan.Placement, error) {
	if err := p.Validate(); err != nil {
		return plan.Placement{}, err
	}
	effort := o.Effort
	if effort == 0 {
		effort = DefaultEffort
	}
	s := newSearch(compile(p), &budget{ctx: ctx, deadline: o.Deadline})
	s.portfolio()
	if !s.dense {
		local := min(effort, DefaultEffort) / 8
		if s.gapped() {
			local = effort / 2
		}
		s.moveToFront(local)
		s.fillUp(effort - local)
	}
	if err := ctx.Err(); err != nil {
		return plan.Placement{}, fmt.Errorf("solve: %w", err)
	}
	placement := plan.Placement{Offsets: make([]int64, len(p.Storages)), Size: s.best.top * s.unit, Method: s.best.method}
	for i, base := range s.best.base {
		placement.Offsets[i] = base * s.unit
	}
	return placement, nil
}

// A budget counts the work that is done and knows when to stop for reasons from
// outside.
type budget struct {
	ctx      context.Context
	deadline time.Time
	spent    int64 // steps
	polled   int64 // spent when ctx and the clock were last looked at
	over     bool
}

// ended reports that ctx is done or that the deadline has come.
func (b *budget) ended() bool {
	const pollEvery = 1 << 17 // well under a millisecond
	if !b.over && b.spent-b.polled >= pollEvery {
		b.polled = b.spent
		b.over = b.ctx.Err() != nil || !b.deadline.IsZero() && !time.Now().Before(b.deadline)
	}
	return b.over
}

// A search holds the best answer so far.
type search struct {
	*packer
	best answer
}

// answer is a placement, in units.
type answer struct {
	top    int64
	base   []int64
	order  []int // in which the packer places the storages, of the best answer that has one
	method string
}

func newSearch(in *instance, b *budget) *search {
	return &search{packer: newPacker(in, b), best: answer{top: math.MaxInt64}}
}

// done reports that the answer cannot get better or that the search has to end.
func (s *search) done() bool { return s.best.top <= s.bound || s.ended() }

// portfolio tries every ranking under every rule of fit.
func (s *search) portfolio() {
	list := rankings
	if s.dense {
		list = list[:1]
	}
	for _, r := range list {
		order := r.order(s.instance)
		for _, rule := range []fit{lowest, tightest} {
			if s.best.top < math.MaxInt64 && s.done() {
				return
			}
			if top, ok := s.pack(order, 0, rule, s.best.top-1); ok {
				s.keepOrder(top, order, fmt.Sprintf("%v fit by %s", rule, r.name))
			}
		}
	}
}

// keepOrder makes the packer's placement the best answer.
func (s *search) keepOrder(top int64, order []int, method string) {
	s.keep(top, s.base, method)
	s.best.order = append(s.best.order[:0], order...)
}

// keep makes base, which ends at top, the best answer.
func (s *search) keep(top int64, base []int64, method string) {
	s.best.top, s.best.method = top, method
	s.best.base = append(s.best.base[:0], base...)
}
