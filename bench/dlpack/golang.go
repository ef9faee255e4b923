package main

import (
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// subjects are the tensors of the loops: the first one of each worker, and
// one that all share.
type subjects struct {
	own    []*tensor.Tensor
	shared *tensor.Tensor
	lists  *memory.Buffer // room for the structs of every worker's turn
	words  []padded
	err    error // the first that a loop met
}

// padded is a word in a cache line of its own, beside a pointer as a cache has
// one.
type padded struct {
	word   atomic.Uint64
	cached unsafe.Pointer
	_      [112]byte
}

func newSubjects(workers int) (*subjects, error) {
	s := &subjects{words: make([]padded, workers)}
	for w := range workers + 1 {
		x, err := tensor.Of(make([]float32, 24), 2, 3, 4)
		if err != nil {
			return nil, err
		}
		if w == workers {
			s.shared = x
			break
		}
		s.own = append(s.own, x)
		s.words[w].cached = unsafe.Pointer(x)
	}
	var err error
	s.lists, err = memory.Alloc(8*perTurn*workers, memory.Scratch)
	return s, err
}

func (s *subjects) close() {
	for _, x := range append(s.own, s.shared) {
		s.check(x.Release())
	}
	s.check(s.lists.Release())
}

func (s *subjects) check(err error) {
	if s.err == nil {
		s.err = err
	}
}

// list is where worker w keeps the structs of a turn, outside the Go heap.
func (s *subjects) list(w int) []*dlpack.DLManagedTensorVersioned {
	all := unsafe.Slice((**dlpack.DLManagedTensorVersioned)(unsafe.Pointer(&s.lists.Bytes()[0])), s.lists.Len()/8)
	return all[w*perTurn : (w+1)*perTurn]
}

// export fills worker w's list.
func (s *subjects) export(w, n int) []*dlpack.DLManagedTensorVersioned {
	list := s.list(w)[:n]
	for i := range list {
		m, err := dlpack.Export(s.own[w])
		s.check(err)
		list[i] = m
	}
	return list
}

func timed(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

func (s *subjects) inGo() []*bench {
	pair := func(x *tensor.Tensor, n int) time.Duration {
		return timed(func() {
			for range n {
				m, err := dlpack.Export(x)
				if err != nil {
					s.check(err)
					return
				}
				m.Delete(nil)
			}
		})
	}
	return []*bench{
		newBench("compare-and-swap, pointer load", "Go: the unit of the ratios", perTurn, s.bareSwap),
		newBench("atomic add", "Go", perTurn, func(w, n int) time.Duration {
			return timed(func() {
				for range n {
					s.words[w].word.Add(1)
				}
			})
		}),
		newBench("export, cached", "Go; goal 1.5", perTurn, s.bareExport),
		newBench("delete", "Go", perTurn, func(w, n int) time.Duration {
			list := s.export(w, n)
			return timed(func() {
				for _, m := range list {
					m.Delete(nil)
				}
			})
		}),
		newBench("export and delete", "Go", perTurn, func(w, n int) time.Duration { return pair(s.own[w], n) }),
		newBench("export and delete, shared", "Go", perTurn, func(_, n int) time.Duration { return pair(s.shared, n) }),
		newBench("export and delete, fresh struct", "Go: a view, its export, both ended", 1000, func(w, n int) time.Duration {
			return timed(func() {
				for range n {
					s.check(s.fresh(w))
				}
			})
		}),
		newBench("fill", "Go: a DLTensor that nobody owns", perTurn, func(w, n int) time.Duration {
			var d dlpack.DLTensor
			return timed(func() {
				for range n {
					s.check(dlpack.Fill(&d, s.own[w]))
				}
			})
		}),
		newBench("export, import, release", "Go to Go", 1000, func(w, n int) time.Duration {
			return timed(func() {
				for range n {
					m, err := dlpack.Export(s.own[w])
					s.check(err)
					x, err := dlpack.Import(m, nil)
					s.check(err)
					s.check(x.Release())
				}
			})
		}),
	}
}

// bareSwap is the least that a cached export could be.
func (s *subjects) bareSwap(w, n int) time.Duration {
	p := &s.words[w]
	var loaded unsafe.Pointer
	took := timed(func() {
		for range n {
			old := p.word.Load()
			if !p.word.CompareAndSwap(old, old+1) {
				s.check(errors.New("somebody else has the word"))
			}
			loaded = atomic.LoadPointer(&p.cached)
		}
	})
	if loaded == nil {
		s.check(errors.New("no pointer was loaded"))
	}
	return took
}

func (s *subjects) bareExport(w, n int) time.Duration {
	x := s.own[w]
	var m *dlpack.DLManagedTensorVersioned
	var err error
	took := timed(func() {
		for range n {
			m, err = dlpack.Export(x)
			if err != nil {
				s.check(err)
				return
			}
		}
	})
	for range n {
		m.Delete(nil)
	}
	return took
}

func (s *subjects) fresh(w int) error {
	v, err := s.own[w].View()
	if err != nil {
		return err
	}
	m, err := dlpack.Export(v)
	if err != nil {
		return errors.Join(err, v.Release())
	}
	m.Delete(nil)
	return v.Release()
}
