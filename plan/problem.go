package plan

import (
	"errors"
	"fmt"
)

// Time is a moment of a run in half-steps: step k reads at 2k and writes at
// 2k+1.
type Time int

// DefaultAlign is the block size in bytes of a Problem that does not name one.
const DefaultAlign = 64

// MaxBytes is the largest byte count that a Problem or a Plan may have or sum
// up to.
const MaxBytes = 1 << 62

// MaxTime is the latest moment that a Problem may name.
const MaxTime Time = 1 << 30

// ErrProblem is the kind of every error that [Problem.Validate] returns.
var ErrProblem = errors.New("invalid problem")

// ErrPlacement is the kind of every error of [Problem.CheckPlacement] that is a
// fault of the placement.
var ErrPlacement = errors.New("invalid placement")

// Piece is a byte range of a storage that is live in [Start, End).
type Piece struct {
	Offset, Size int64 // in bytes, from the base of the storage
	Start, End   Time
}

// Storage is a range of bytes that several values share at fixed distances
// (views, in-place chains, parts of a concatenation). It gets one base offset;
// its pieces have lifetimes of their own, and pieces of one storage may overlap
// in bytes and time, because they alias by intent.
type Storage struct {
	Name   string
	Size   int64 // in bytes; every piece lies in [0, Size)
	Pieces []Piece
}

// Problem asks for one base offset per storage such that pieces of different
// storages that overlap in time do not overlap in bytes. Align is the block
// size in bytes, a power of two; 0 stands for DefaultAlign.
type Problem struct {
	Storages []Storage
	Align    int64
}

// Placement is an answer to a Problem.
type Placement struct {
	Offsets []int64 // base offset in bytes, one per storage
	Size    int64   // bytes of the arena: the end of the highest storage
	Method  string  // how it was found, for reports
}

// BlockSize returns the block size in bytes: Align, or DefaultAlign where Align
// is 0.
func (p *Problem) BlockSize() int64 {
	if p.Align == 0 {
		return DefaultAlign
	}
	return p.Align
}

// Blocks returns the range of bytes [lo, hi), from the base of its storage, of
// the blocks that piece x touches; lo == hi for a piece without bytes.
func (p *Problem) Blocks(x Piece) (lo, hi int64) {
	align := p.BlockSize()
	lo = x.Offset &^ (align - 1)
	if x.Size == 0 {
		return lo, lo
	}
	return lo, (x.Offset + x.Size + align - 1) &^ (align - 1)
}

// Extent returns the bytes of the blocks that storage s reserves when it is
// placed: its size rounded up to whole blocks.
func (p *Problem) Extent(s *Storage) int64 {
	align := p.BlockSize()
	return (s.Size + align - 1) &^ (align - 1)
}

// Validate reports the first fault of p: a negative size, a piece outside its
// storage or without a life, a block size that is not a power of two, or sizes
// that sum up past MaxBytes. The error is an ErrProblem.
func (p *Problem) Validate() error {
	if a := p.BlockSize(); a < 0 || a&(a-1) != 0 || a > 1<<30 {
		return fmt.Errorf("plan: %w: align: got %d, want a power of two up to %d", ErrProblem, p.Align, 1<<30)
	}
	var sum int64
	for i := range p.Storages {
		s := &p.Storages[i]
		if err := s.validate(); err != nil {
			return fmt.Errorf("plan: %w: storage %d (%q): %w", ErrProblem, i, s.Name, err)
		}
		extent := p.Extent(s)
		if extent > MaxBytes-sum {
			return fmt.Errorf("plan: %w: storage %d (%q): sum of sizes: got more than %d bytes, want at most that",
				ErrProblem, i, s.Name, int64(MaxBytes))
		}
		sum += extent
	}
	return nil
}

func (s *Storage) validate() error {
	if s.Size < 0 || s.Size > MaxBytes {
		return fmt.Errorf("size: got %d, want 0 to %d", s.Size, int64(MaxBytes))
	}
	for i, x := range s.Pieces {
		switch {
		case x.Size < 0:
			return fmt.Errorf("piece %d: size: got %d, want 0 or more", i, x.Size)
		case x.Offset < 0 || x.Offset > s.Size || x.Size > s.Size-x.Offset:
			return fmt.Errorf("piece %d: bytes: got %d at offset %d, want them within the storage's %d", i, x.Size, x.Offset, s.Size)
		case x.Start < 0 || x.End > MaxTime:
			return fmt.Errorf("piece %d: life: got [%d,%d), want it within [0,%d)", i, x.Start, x.End, MaxTime)
		case x.Start >= x.End:
			return fmt.Errorf("piece %d: life: got [%d,%d), want its start before its end", i, x.Start, x.End)
		}
	}
	return nil
}

// CheckPlacement proves that a answers p, by comparing every pair of pieces:
// bases are on blocks and storages within a.Size, and no two pieces of
// different storages that overlap in time share a block.
func (p *Problem) CheckPlacement(a Placement) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if len(a.Offsets) != len(p.Storages) {
		return fmt.Errorf("plan: %w: offsets: got %d, want %d, one per storage", ErrPlacement, len(a.Offsets), len(p.Storages))
	}
	for i := range p.Storages {
		s, base := &p.Storages[i], a.Offsets[i]
		if base < 0 || base%p.BlockSize() != 0 {
			return fmt.Errorf("plan: %w: storage %d (%q): offset: got %d, want a multiple of %d", ErrPlacement, i, s.Name, base, p.BlockSize())
		}
		if extent := p.Extent(s); extent > a.Size-base {
			return fmt.Errorf("plan: %w: storage %d (%q): end: got %d bytes at offset %d, want them within %d",
				ErrPlacement, i, s.Name, extent, base, a.Size)
		}
		for j := range i {
			if err := p.checkPair(a, j, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *Problem) checkPair(a Placement, i, j int) error {
	for m, x := range p.Storages[i].Pieces {
		for n, y := range p.Storages[j].Pieces {
			if x.Start >= y.End || y.Start >= x.End {
				continue
			}
			xlo, xhi := p.Blocks(x)
			ylo, yhi := p.Blocks(y)
			xlo, xhi, ylo, yhi = xlo+a.Offsets[i], xhi+a.Offsets[i], ylo+a.Offsets[j], yhi+a.Offsets[j]
			if max(xlo, ylo) < min(xhi, yhi) {
				return fmt.Errorf("plan: %w: storage %d (%q) piece %d at bytes [%d,%d) and storage %d (%q) piece %d at bytes [%d,%d): "+
					"got shared bytes at time %d, want none", ErrPlacement,
					i, p.Storages[i].Name, m, xlo, xhi, j, p.Storages[j].Name, n, ylo, yhi, max(x.Start, y.Start))
			}
		}
	}
	return nil
}
