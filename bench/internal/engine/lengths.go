package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// readAll makes the tensors of inputs. The caller releases them.
func readAll(inputs []Input) (tenure.Inputs, func(), error) {
	in := tenure.Inputs{}
	var list []*tensor.Tensor
	release := func() {
		for _, x := range list {
			x.Release()
		}
	}
	for _, i := range inputs {
		x, err := i.read()
		if err != nil {
			release()
			return nil, nil, err
		}
		list = append(list, x)
		in[i.Name] = x
	}
	return in, release, nil
}

// onceOn runs on inputs of other sizes than those of load, and hands the
// outputs to use before they are released.
func (s *server) onceOn(inputs []Input, use func(tenure.Outputs) error) error {
	in, release, err := readAll(inputs)
	if err != nil {
		return err
	}
	defer release()
	out, err := s.session.Run(context.Background(), in)
	if err != nil {
		return err
	}
	return errors.Join(use(out), out.Release())
}

// first times runs on inputs whose sizes are new, the first of which is the
// first run of these sizes. A run on the inputs of load stands before each, so
// that all of them find the same in the caches.
func (s *server) first(q Request) (r Reply, err error) {
	in, release, err := readAll(q.Inputs)
	if err != nil {
		return r, err
	}
	defer release()
	for range q.Runs + 1 {
		if err := s.once(nil); err != nil {
			return r, err
		}
		start := time.Now()
		out, err := s.session.Run(context.Background(), in)
		if err != nil {
			return r, err
		}
		if err := out.Release(); err != nil {
			return r, err
		}
		r.Nanos = append(r.Nanos, time.Since(start).Nanoseconds())
	}
	return r, nil
}

// grow times a run on each set of inputs. The states come from the run before:
// their names stand in the first set.
func (s *server) grow(q Request) (r Reply, err error) {
	becomes := map[string]string{}
	var last tenure.Outputs
	defer func() { err = errors.Join(err, last.Release()) }()
	for step, set := range q.Sets {
		in, release, err := readAll(set)
		if err != nil {
			return r, err
		}
		for _, i := range set {
			if step == 0 && i.Becomes != "" {
				becomes[i.Name] = i.Becomes
			}
		}
		if step > 0 {
			for name, output := range becomes {
				in[name] = last[output]
			}
		}
		start := time.Now()
		out, err := s.session.Run(context.Background(), in)
		r.Nanos = append(r.Nanos, time.Since(start).Nanoseconds())
		release()
		if err := errors.Join(err, last.Release()); err != nil {
			return r, fmt.Errorf("step %d: %w", step, errors.Join(err, out.Release()))
		}
		last = out
	}
	return r, nil
}

// prepare times what makes the session ready for runs on inputs of new sizes: a
// plan, its proof, the tasks of its kernels, and the pages of its arena.
func (s *server) prepare(q Request) (r Reply, err error) {
	shapes := tenure.Shapes{}
	for _, in := range q.Inputs {
		shapes[in.Name] = in.Dims
	}
	start := time.Now()
	if err := s.session.Prepare(context.Background(), shapes); err != nil {
		return r, err
	}
	r.Nanos = []int64{time.Since(start).Nanoseconds()}
	return r, nil
}

// counts says how many steps a run on the inputs of load has, how many
// structures the model keeps, and how many sizes were instances of one.
func (s *server) counts() (Reply, error) {
	shapes := tenure.Shapes{}
	for name, x := range s.inputs {
		shapes[name] = x.Shape().Sizes()
	}
	f := s.model.Structures() // before the plan, which may be made again
	p, err := s.session.Plan(context.Background(), shapes)
	if err != nil {
		return Reply{}, err
	}
	pinned := 0
	for _, n := range f.Pinned {
		pinned += n
	}
	return Reply{Counts: map[string]int64{"steps": int64(len(p.Steps)), "structures": int64(f.Compiled - f.Instances),
		"instances": int64(f.Instances), "pinned": int64(pinned)}}, nil
}
