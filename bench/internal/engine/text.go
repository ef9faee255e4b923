package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// keeper is the model once more, loaded with states, and its states.
type keeper struct {
	model   *tenure.Model
	session *tenure.Session
	states  *tenure.States
}

func (k *keeper) close() {
	if k == nil {
		return
	}
	k.states.Close()
	if k.session != nil {
		k.session.Close()
	}
	if k.model != nil {
		k.model.Close()
	}
}

// keepStates loads the model with states.
func (s *server) keepStates(capacity int) (err error) {
	k := new(keeper)
	s.keeper = k
	if k.model, err = tenure.Load(s.loaded.Model, tenure.WithStates()); err != nil {
		return err
	}
	if k.session, err = k.model.NewSession(tenure.WithThreads(s.loaded.Threads)); err != nil {
		return err
	}
	if k.states, err = k.session.NewStates(capacity); err != nil {
		return err
	}
	return s.warm(k)
}

// warm runs once on the inputs of load, as the runs after a load do.
func (s *server) warm(k *keeper) error {
	values, in := map[string]*tensor.Tensor{}, tenure.Inputs{}
	for name, x := range s.inputs {
		in[name] = x
	}
	for _, state := range k.model.States() {
		values[state.Input] = s.inputs[state.Input]
		delete(in, state.Input)
	}
	if err := k.states.Set(values); err != nil {
		return err
	}
	out, err := k.states.Run(context.Background(), in)
	if err != nil {
		return err
	}
	return out.Release()
}

// text times a run on each set of inputs. The states of the first run are those
// of the first set; the others stay where they are.
func (s *server) text(q Request) (r Reply, err error) {
	if s.keeper == nil {
		if err := s.keepStates(q.Runs); err != nil {
			return r, err
		}
	}
	for step, set := range q.Sets {
		in, release, err := readAll(set)
		if err != nil {
			return r, err
		}
		values := map[string]*tensor.Tensor{}
		for _, i := range set {
			if i.Becomes != "" {
				values[i.Name] = in[i.Name].Tensor()
				delete(in, i.Name)
			}
		}
		if step == 0 {
			err = s.keeper.states.Set(values)
		}
		if err != nil {
			release()
			return r, err
		}
		start := time.Now()
		out, err := s.keeper.states.Run(context.Background(), in)
		if err == nil {
			err = out.Release()
		}
		r.Nanos = append(r.Nanos, time.Since(start).Nanoseconds())
		release()
		if err != nil {
			return r, fmt.Errorf("step %d: %w", step, err)
		}
	}
	copied, err := s.keeper.states.Copied()
	if err == nil && len(copied) > 0 {
		err = fmt.Errorf("got %d states that are copied in every run, want none: %v", len(copied), copied)
	}
	return r, err
}
