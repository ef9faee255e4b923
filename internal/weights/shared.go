package exec

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"unsafe"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// Common gives memory that whoever asks with the same key has in common: its
// bytes follow from the key. fill makes them, from zeros, where nobody has
// them.
type Common func(ctx context.Context, key [sha256.Size]byte, size int, fill func(dst []byte) error) (*memory.Buffer, error)

// commonFormat is the version of what keys say and of how parts follow one
// another.
const commonFormat = 1

// parts are what an executable needs in memory of its own and does not find in
// common memory yet: panels, and weights that are read as they are. Their key
// is a hash of the bytes that they are made from, and of what is made of them.
// Where each part lies follows from the list, so the memory holds nothing but
// the parts.
type parts struct {
	list []part
	size int
	hash hash.Hash
}

type part struct {
	offset, size int
	fill         func(dst []byte) error
	found        func(b []byte) error // told where the part is
}

func newParts() *parts {
	p := &parts{hash: sha256.New()}
	fmt.Fprintf(p.hash, "tenure constants %d, forms %d, %s\n", commonFormat, compute.FormsVersion, cpu.Level())
	return p
}

// add appends a part that is made in the named way of the bytes.
func (p *parts) add(form string, from []byte, of part) {
	digest := sha256.Sum256(from)
	var numbers [24]byte
	binary.LittleEndian.PutUint64(numbers[:], uint64(len(form)))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(len(from)))
	binary.LittleEndian.PutUint64(numbers[16:], uint64(of.size))
	p.hash.Write(numbers[:])
	p.hash.Write([]byte(form))
	p.hash.Write(digest[:])
	of.offset = p.size
	p.list = append(p.list, of)
	p.size += (of.size + memory.Alignment - 1) / memory.Alignment * memory.Alignment
}

// packInCommon finds in common memory what the executable would have to make
// for itself, or makes it there.
func (e *Executable) packInCommon(ctx context.Context) error {
	p := newParts()
	for _, v := range e.packing.weights {
		for _, key := range e.packing.of[v] {
			if err := e.addPanel(p, key, v); err != nil {
				return err
			}
		}
	}
	if err := e.addOthers(p); err != nil {
		return err
	}
	if len(p.list) == 0 {
		return nil
	}
	b, err := e.panels.common(ctx, [sha256.Size]byte(p.hash.Sum(nil)), p.size, p.fill)
	if err != nil {
		return fmt.Errorf("packing weights: %w", err)
	}
	e.panels.keep(b)
	for _, of := range p.list {
		if err := of.found(b.Bytes()[of.offset : of.offset+of.size : of.offset+of.size]); err != nil {
			return err
		}
	}
	return nil
}

func (p *parts) fill(dst []byte) error {
	for _, of := range p.list {
		if err := of.fill(dst[of.offset : of.offset+of.size : of.offset+of.size]); err != nil {
			return err
		}
	}
	return nil
}

// addPanel adds a panel of a weight, unless it is packed.
func (e *Executable) addPanel(p *parts, key panel, v *ir.Value) error {
	if e.panels.bytes(key) != nil {
		return nil
	}
	f := e.packing.forms[key]
	source := func() ([]byte, error) { return e.panels.source(key, v) }
	data, err := source()
	if err != nil {
		return err
	}
	p.add("panel: "+f.Name, data, part{
		size: f.Bytes,
		fill: func(dst []byte) error {
			data, err := source()
			if err != nil {
				return err
			}
			if err := e.panels.packInto(dst, data, &f, v); err != nil {
				return err
			}
			return e.panels.constants.Spare(v, nil)
		},
		found: func(b []byte) error {
			e.panels.put(key, b)
			return nil
		},
	})
	return e.panels.constants.Spare(v, nil) // most processes read it only this once
}

// addOthers adds the weights that are read as they are and those that are
// read only when a program is made, where they lie in memory of the process.
// Constants of this program alone do not belong there: they go with it.
func (e *Executable) addOthers(p *parts) error {
	var list []*ir.Value
	packed := map[string]bool{}
	for _, v := range e.Program.Weights {
		if e.packing.raw[v] && e.panels.constants.Has(v) {
			list = append(list, v)
		}
		packed[v.Name] = len(e.packing.of[v]) > 0
	}
	for _, v := range e.panels.constants.InPrivate() {
		if !packed[v.Name] {
			list = append(list, v)
		}
	}
	seen := map[*byte]bool{}
	for _, v := range list {
		data, err := e.panels.constants.Private(v)
		if err != nil {
			return err
		}
		if len(data) == 0 || seen[unsafe.SliceData(data)] {
			continue
		}
		seen[unsafe.SliceData(data)] = true
		p.add("as it is", data, part{
			size: len(data),
			fill: func(dst []byte) error {
				copy(dst, data)
				return nil
			},
			found: func(b []byte) error { return e.panels.constants.Move(v, b) },
		})
	}
	return nil
}
