package tenure

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/shape"
)

// cached is a plan and the key that it was made for. The key holds the
// shapes, so their pointers stay theirs.
type cached struct {
	shapes  []*shape.Shape
	donated []bool
	frozen  []frozen
	exe     *exec.Executable
}

// frozen is the value of an input that decides a shape: it is part of the key.
type frozen struct {
	input int
	bytes []byte
}

// find returns the executable for the key and makes it the one used last.
func (s *Session) find(t target) *exec.Executable {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range s.plans {
		if !c.matches(t) {
			continue
		}
		copy(s.plans[1:i+1], s.plans[:i])
		s.plans[0] = c
		s.stats.Found++
		return c.exe
	}
	return nil
}

func (c *cached) matches(t target) bool {
	for i := range t.types {
		if c.shapes[i] != t.types[i].Shape || c.donated[i] != t.donated[i] {
			return false
		}
	}
	for _, f := range c.frozen {
		if t.value == nil || !bytes.Equal(f.bytes, t.value(f.input)) {
			return false
		}
	}
	return true
}

// executable returns the executable for a target, from the cache or compiled
// now.
func (s *Session) executable(ctx context.Context, t target) (*exec.Executable, error) {
	if exe := s.find(t); exe != nil {
		return exe, nil
	}
	select {
	case s.compiling <- struct{}{}:
		defer func() { <-s.compiling }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another plan to be made: %w", ended.Error(ctx))
	}
	if exe := s.find(t); exe != nil {
		return exe, nil
	}
	exe, deciding, err := s.model.compileAndPack(ctx, t, s.opts)
	if err != nil {
		return nil, err
	}
	c := &cached{donated: slices.Clone(t.donated), exe: exe}
	for _, typ := range t.types {
		c.shapes = append(c.shapes, typ.Shape)
	}
	for _, i := range deciding {
		c.frozen = append(c.frozen, frozen{i, bytes.Clone(t.value(i))})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Compiled++
	s.plans = slices.Insert(s.plans, 0, c)
	if len(s.plans) > s.opts.plans {
		s.plans[s.opts.plans] = nil
		s.plans = s.plans[:s.opts.plans]
		s.epoch++
	}
	return exe, nil
}
