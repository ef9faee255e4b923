package solve

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/tenure-go/tenure/plan"
)

// DefaultEffort is the budget of a search that names none: some tens of milliseconds.
const DefaultEffort = 2_000_000

// Options say how long Solve may look for a better placement once it has one. The zero value is a good choice.
type Options struct {
	// Effort is the work that the searches after the portfolio may spend, in comparisons of two classes.
	// 0 stands for DefaultEffort, less than 0 for none.
	Effort int64
	// Deadline ends the search by the clock, with the best placement so far; the result then depends on the machine.
	// The zero time stands for no deadline.
	Deadline time.Time
}

// Solve returns the smallest placement that it finds for p, in the given effort. It stops early at p.LowerBound. The error
// is a fault of p (plan.ErrProblem), or that of ctx when it is done before the placement is found.
func Solve(ctx context.Context, p *plan.Problem, o Options) (plan.Placement, error) {
	if err := p.Validate(); err != nil {
		return plan.Placement{}, err
	}
	s := newSearch(ctx, compile(p), o)
	s.portfolio()
	s.moveToFront()
	if err := ctx.Err(); err != nil {
		return plan.Placement{}, fmt.Errorf("solve: %w", err)
	}
	align := p.BlockSize()
	best := plan.Placement{Offsets: make([]int64, len(p.Classes)), Size: s.best.top * align, Method: s.best.method}
	for i, base := range s.best.base {
		best.Offsets[i] = base * align
	}
	return best, nil
}

// A search holds the best answer so far and what may still be spent.
type search struct {
	*packer
	ctx      context.Context
	deadline time.Time
	effort   int64 // spent may reach this
	polled   int64 // spent when the clock was last read
	over     bool
	best     answer
}

// answer is a placement in blocks.
type answer struct {
	top    int64
	base   []int64
	order  []int // that fit placed
	method string
}

func newSearch(ctx context.Context, in *instance, o Options) *search {
	effort := o.Effort
	if effort == 0 {
		effort = DefaultEffort
	}
	return &search{packer: newPacker(in), ctx: ctx, deadline: o.Deadline, effort: max(effort, 0), best: answer{top: math.MaxInt64}}
}

// done reports that the answer cannot get better or that ctx or the clock ended the search.
func (s *search) done() bool {
	const pollEvery = 1 << 15 // steps of work, well under a millisecond
	if s.spent-s.polled >= pollEvery {
		s.polled = s.spent
		s.over = s.over || s.ctx.Err() != nil || !s.deadline.IsZero() && !time.Now().Before(s.deadline)
	}
	return s.over || s.best.top <= s.bound
}

// keep makes what the packer holds the best answer.
func (s *search) keep(top int64, order []int, method string) {
	s.best = answer{top: top, base: append(s.best.base[:0], s.base...), order: append(s.best.order[:0], order...), method: method}
}

// portfolio tries every ranking under every rule of fit.
func (s *search) portfolio() {
	for _, r := range rankings {
		order := r.order(s.instance)
		for _, rule := range []fit{lowest, tightest} {
			if s.best.top < math.MaxInt64 && s.done() {
				return
			}
			if top, ok := s.pack(order, 0, rule, s.best.top-1); ok {
				s.keep(top, order, fmt.Sprintf("%v fit by %s", rule, r.name))
			}
		}
	}
}
