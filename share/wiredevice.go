package share

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// The messages about memory of devices.

// arenaKind is the kind of an arena.
type arenaKind uint8

const (
	hostArena       arenaKind = iota
	cudaArena                 // memory of a CUDA device, mapped by its descriptor
	allocationArena           // an allocation of another allocator on a CUDA device, opened by its handle
)

// UUID identifies a device. It is the same in every process, whatever numbers
// devices have there.
type UUID [16]byte

// String returns the form that nvidia-smi prints.
func (u UUID) String() string {
	return fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// arenaNote is the body of ARENA.
type arenaNote struct {
	id    uint64
	size  int
	kind  arenaKind
	uuid  UUID // of the device
	pages int  // the device's granularity; 0 for an allocation

	handle [64]byte // of an allocation
}

func (m arenaNote) append(b []byte) []byte {
	b = le.AppendUint64(b, m.id)
	b = le.AppendUint64(b, uint64(m.size))
	b = append(b, byte(m.kind))
	if m.kind == hostArena {
		return append(b, make([]byte, 15)...)
	}
	b = append(b, make([]byte, 7)...)
	b = le.AppendUint64(b, uint64(m.pages))
	b = append(b, m.uuid[:]...)
	b = append(b, make([]byte, 16)...)
	if m.kind == allocationArena {
		b = append(b, m.handle[:]...)
	}
	return b
}

func parseArena(b []byte) (m arenaNote, err error) {
	m.id, m.kind = le.Uint64(b), arenaKind(b[16])
	size := le.Uint64(b[8:])
	switch {
	case m.id == 0:
		return m, malformed("got an arena with id 0")
	case size == 0 || size%arenaMultiple != 0 && m.kind != allocationArena || size > math.MaxInt64:
		return m, malformed("got an arena of %d bytes, want a multiple of %d", size, arenaMultiple)
	case anySet(b[17:24]) || m.kind == hostArena && (len(b) != arenaBytes || anySet(b[24:])):
		return m, malformed("got ARENA with bytes set that version %d leaves 0", version)
	}
	m.size = int(size)
	if m.kind == hostArena {
		return m, nil
	}
	if m.kind == allocationArena && len(b) == allocationBytes {
		return m, m.parseAllocation(b)
	}
	if m.kind != cudaArena || len(b) != deviceBytes {
		return m, fmt.Errorf("got an arena of kind %d in %d bytes, want %d (host memory), %d (of a CUDA device) or %d (an allocation there): %w",
			m.kind, len(b), hostArena, cudaArena, allocationArena, errArenaKind)
	}
	pages := le.Uint64(b[24:])
	m.uuid = UUID(b[32:48])
	if pages == 0 || pages > math.MaxInt64 || size%pages != 0 || anySet(b[48:deviceBytes]) {
		return m, malformed("got an arena of %d bytes in units of %d, want whole ones, and zeros behind the UUID", size, pages)
	}
	m.pages = int(pages)
	return m, nil
}

// parseAllocation parses what only an allocation has.
func (m *arenaNote) parseAllocation(b []byte) error {
	if anySet(b[24:32]) || anySet(b[48:deviceBytes]) {
		return malformed("got an allocation with bytes set beside its UUID that version %d leaves 0", version)
	}
	m.uuid, m.handle = UUID(b[32:48]), [64]byte(b[deviceBytes:])
	return nil
}

// mark names the work of the owner's device that writes a tensor: a record of
// the event in that slot of the connection. Slot 0 is work that is complete.
type mark struct{ slot, sequence uint32 }

// eventNote is the body of EVENT.
type eventNote struct {
	slot   uint32
	kind   arenaKind
	handle [64]byte
}

func (m eventNote) append(b []byte) []byte {
	b = le.AppendUint32(b, m.slot)
	b = append(b, byte(m.kind), 0, 0, 0)
	b = append(b, m.handle[:]...)
	return le.AppendUint64(b, 0)
}

func parseEvent(b []byte) (m eventNote, err error) {
	m = eventNote{slot: le.Uint32(b), kind: arenaKind(b[4]), handle: [64]byte(b[8:])}
	if m.slot == 0 || m.kind != cudaArena || anySet(b[5:8]) || anySet(b[72:eventBytes]) {
		return m, malformed("got EVENT %d of kind %d, want a slot, kind %d and zeros", m.slot, m.kind, cudaArena)
	}
	return m, nil
}

// parseOpened returns the slot and the reason in the body of an OPENED, nil if
// the event is open.
func parseOpened(b []byte) (slot uint32, why error, err error) {
	if le.Uint32(b[4:]) > 1 || !utf8.Valid(b[8:]) {
		return 0, nil, malformed("got OPENED with %d and the reason %q, want 0 or 1 and UTF-8", le.Uint32(b[4:]), b[8:])
	}
	if le.Uint32(b[4:]) == 1 {
		why = fmt.Errorf("%w: %s", ErrRefused, b[8:])
	}
	return le.Uint32(b), why, nil
}
