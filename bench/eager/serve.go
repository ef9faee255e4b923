package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// arenaLimit is more than any result takes.
const arenaLimit = 1 << 36

// server is Tenure's side: one operation with its operands.
type server struct {
	op    *operation
	x     []*tensor.Tensor
	arena *memory.Arena // where results lie that have the same bytes on every run
}

// answer carries out a request.
func (s *server) answer(q engine.Request) (engine.Reply, error) {
	switch q.Do {
	case "load":
		return s.load(q)
	case "run":
		return engine.Time(q, func() error { return s.once(nil) })
	case "outputs":
		return s.outputs(q)
	}
	return engine.Reply{}, fmt.Errorf("got %q, want load, run or outputs", q.Do)
}

func (s *server) forget() (err error) {
	for _, x := range s.x {
		err = errors.Join(err, x.Release())
	}
	if s.arena != nil {
		err = errors.Join(err, s.arena.Close())
	}
	*s = server{}
	return err
}

func (s *server) load(q engine.Request) (engine.Reply, error) {
	if err := s.forget(); err != nil {
		return engine.Reply{}, err
	}
	for _, op := range operations() {
		if op.name == q.Model {
			s.op = &op
		}
	}
	if s.op == nil {
		return engine.Reply{}, fmt.Errorf("got operation %q, want one of the table", q.Model)
	}
	for _, in := range q.Inputs {
		x, err := read(in)
		if err != nil {
			return engine.Reply{}, err
		}
		s.x = append(s.x, x)
	}
	if q.Into {
		var err error
		if s.arena, err = memory.NewArena(arenaLimit, memory.Activations); err != nil {
			return engine.Reply{}, err
		}
	}
	runtime.GC()
	return engine.Reply{About: fmt.Sprintf("Tenure, %s", runtime.Version())}, nil
}

func read(in engine.Input) (*tensor.Tensor, error) {
	dt, err := dtype.Parse(in.Type)
	if err != nil {
		return nil, err
	}
	sh, err := shape.Of(in.Dims...)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(in.File)
	if err != nil {
		return nil, err
	}
	return tensor.FromBytes(dt, sh, data)
}

// once computes the operation; its result, if anybody wants to see it, lives
// until seen returns.
func (s *server) once(seen func(t *tensor.Tensor) error) error {
	var options []eager.Option
	if s.arena != nil {
		options = append(options, eager.From(s.arena, eager.HoldOpen))
	}
	scope := eager.NewScope(options...)
	t := s.op.tenure(scope, s.x)
	err := scope.Err()
	if err == nil && seen != nil {
		err = seen(t)
	}
	return errors.Join(err, scope.Close())
}

// outputs writes the result, and says of what type it is.
func (s *server) outputs(q engine.Request) (r engine.Reply, err error) {
	file := filepath.Join(q.Dir, "tenure")
	err = s.once(func(t *tensor.Tensor) error {
		r.About, r.After = t.DType().String(), int64(t.NumBytes())
		data, _ := t.UnsafeBytes()
		return os.WriteFile(file, data, 0o666)
	})
	r.Files = []string{file}
	return r, err
}
