package exec

import (
	"runtime"
)

// pageBytes is how far apart bytes are touched: no system has smaller pages.
const pageBytes = 4 << 10

// Warm brings everything that the next run of e needs into memory: its runner,
// bound, and the pages of the slot's arena and scratch and of the weights that
// its calls read. The arena stays that of e until another executable runs.
func (s *Slot) Warm(e *Executable) error {
	r, err := s.Runner(e)
	if err != nil {
		return err
	}
	for _, own := range [][]byte{bytesOr(s.arena), bytesOr(s.scratch)} {
		for i := 0; i < len(own); i += pageBytes {
			own[i] = 0
		}
	}
	r.readConstants()
	return nil
}

// readConstants reads a byte of every page of the weights that the calls read,
// packed or as they are.
func (r *Runner) readConstants() {
	sum := byte(0)
	for k := range r.steps {
		t := r.steps[k].task
		if t == nil {
			continue
		}
		for i := range t.Call.In {
			if r.exe.ref(k, i).space != weightSpace {
				continue
			}
			for data, at := t.Call.In[i].Data, 0; at < len(data); at += pageBytes {
				sum += data[at]
			}
		}
	}
	runtime.KeepAlive(sum) // or nothing would be read
}
