package weights

import (
	"context"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Panel is a part of a weight in the form that a kernel reads. Panels of one
// part in forms of one name are equal, whichever program packs them.
type Panel struct {
	Weight       *ir.Value
	Offset, Size int64  // the part, in bytes
	Form         string // what Pack makes
	Bytes        int    // of the panel

	// Measure returns Bytes where they depend on the weight's bytes; it is nil
	// where they do not.
	Measure func(src []byte) int

	// Pack writes the panel to dst, Bytes long and zeroed, from the part.
	// Unpack makes the part again; it is nil where nothing can.
	Pack, Unpack func(dst, src []byte)
}

type panelKey struct {
	weight, form string
	offset, size int64
}

func (p *Panel) key() panelKey { return panelKey{p.Weight.Name, p.Form, p.Offset, p.Size} }

// Use is how a program reads a weight: in panels, or as it is where there are
// none.
type Use struct {
	Weight *ir.Value
	Panels []*Panel
}

// restorer returns the panel that all bytes of the weight can be made from
// again, nil for none.
func (u *Use) restorer() *Panel {
	size, _ := u.Weight.Type.Bytes()
	for _, p := range u.Panels {
		if p.Unpack != nil && p.Size == int64(size) {
			return p
		}
	}
	return nil
}

// Panel returns the bytes of a panel, nil before it is packed.
func (s *Store) Panel(p *Panel) []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.panels[p.key()]
}

// Unloads reports whether Pack frees the weight's own bytes.
func (s *Store) Unloads(u Use) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(u.Panels) > 0 && s.canUnload(u.Weight, u.restorer() != nil)
}

// Measure sets the size of a panel where it depends on the weight's bytes.
func (s *Store) Measure(p *Panel) error {
	if p.Measure == nil {
		return nil
	}
	s.mu.RLock()
	size, known := s.sizes[p.key()]
	s.mu.RUnlock()
	if !known {
		data, err := s.panelSource(p)
		if err == nil {
			err = s.withAligned(data, p.Weight, func(src []byte) { size = p.Measure(src) })
		}
		if err == nil {
			err = s.unload(p.Weight, nil) // read again when it is packed
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.sizes[p.key()] = size
		s.mu.Unlock()
	}
	p.Bytes = size
	return nil
}

// Pack makes the panels that a program reads, unless another program has made
// them, and unloads the weights that are packed. Those that the program reads
// as they are stay where they are: table has them, and maybe constants that
// the store does not have. Where panels go to shared memory, forms names what
// forms of one name differ by between processes, and ctx ends the wait for
// another process that packs the same. No program with the same weights may be
// compiled at the same time.
func (s *Store) Pack(ctx context.Context, uses []Use, table ir.Weights, forms string) error {
	s.packing = s.count(PackingWeights, s.unpacked(uses))
	defer s.packing.end()
	if s.opts.Share != nil {
		if err := s.share(ctx, uses, forms); err != nil {
			return err
		}
	}
	for _, u := range uses {
		if len(u.Panels) > 0 {
			continue
		}
		if data, ok := table.Bytes(u.Weight); ok {
			s.pin(data)
		}
	}
	for _, u := range uses {
		if len(u.Panels) == 0 {
			continue
		}
		for _, p := range u.Panels {
			if err := s.pack(p); err != nil {
				return err
			}
		}
		var restore func([]byte)
		if p := u.restorer(); p != nil {
			packed := s.Panel(p)
			restore = func(dst []byte) { p.Unpack(dst, packed) }
		}
		if err := s.unload(u.Weight, restore); err != nil {
			return err
		}
	}
	return nil
}

// pack makes a panel in memory of this process, unless there is one.
func (s *Store) pack(p *Panel) error {
	if s.Panel(p) != nil {
		return nil
	}
	data, err := s.panelSource(p)
	if err != nil {
		return err
	}
	b, err := memory.Alloc(p.Bytes, memory.Weights)
	if err != nil {
		return fmt.Errorf("packing weight %q: %w", p.Weight.Name, err)
	}
	b.SetLabel(p.Weight.Name + ", " + p.Form)
	if err := s.packInto(b.Bytes(), data, p); err != nil {
		return errors.Join(err, b.Release())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.packed = append(s.packed, b)
	s.panels[p.key()] = b.Bytes()
	return nil
}

// panelSource returns the part of the weight that a panel is made from, at any
// address.
func (s *Store) panelSource(p *Panel) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var data []byte
	if e := s.entries[p.Weight.Name]; e != nil {
		data, _ = s.raw(p.Weight.Name, e)
	}
	if int64(len(data)) < p.Offset+p.Size {
		return nil, fmt.Errorf("packing weight %q: no memory for its bytes: %w", p.Weight.Name, tensor.ErrLimit)
	}
	return data[p.Offset : p.Offset+p.Size : p.Offset+p.Size], nil
}

// packInto packs bytes at any address.
func (s *Store) packInto(dst, src []byte, p *Panel) error {
	err := s.withAligned(src, p.Weight, func(src []byte) { p.Pack(dst, src) })
	s.packing.add(int64(p.Bytes))
	return err
}

// withAligned calls use with bytes that lie at any address. Kernels read whole
// elements, so unaligned bytes are copied for as long as the call takes.
func (s *Store) withAligned(src []byte, v *ir.Value, use func(src []byte)) error {
	if isAligned(src, v.Type.DType) {
		use(src)
		return nil
	}
	b, err := memory.Alloc(len(src), memory.Weights)
	if err != nil {
		return fmt.Errorf("packing weight %q: %w", v.Name, err)
	}
	copy(b.Bytes(), src)
	err = s.unload(v, nil) // not there three times
	use(b.Bytes())
	return errors.Join(err, b.Release())
}
