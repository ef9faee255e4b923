package share

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

func TestDeviceArenas(t *testing.T) {
	good := arenaNote{id: 1, size: 4 << 20, kind: cudaArena, uuid: UUID{0: 0xab, 15: 2}, pages: 2 << 20}
	body := good.append(nil)
	if m, err := parseArena(body); err != nil || m != good {
		t.Fatalf("got %+v, %v, want %+v", m, err, good)
	}
	if got, want := good.uuid.String(), "GPU-ab000000-0000-0000-0000-000000000002"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for at, c := range map[int]byte{0: 0, 9: 1, 17: 1, 23: 1, 24: 1, 31: 0x80, 48: 1, 63: 1} {
		b := append([]byte{}, body...)
		b[at] = c
		if _, err := parseArena(b); !errors.Is(err, ErrPeer) {
			t.Errorf("ARENA with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
	body[16] = 3
	if _, err := parseArena(body); !errors.Is(err, errArenaKind) || errors.Is(err, ErrPeer) {
		t.Errorf("a kind to come: got %v, want a refusal that is no breach", err)
	}
}

func TestAllocationArenas(t *testing.T) {
	good := arenaNote{id: 1, size: 1001, kind: allocationArena, uuid: UUID{0: 0xab, 15: 2}, handle: [64]byte{0: 1, 63: 2}}
	body := good.append(nil)
	if m, err := parseArena(body); err != nil || m != good || len(body) != allocationBytes {
		t.Fatalf("got %+v, %v in %d bytes, want %+v in %d", m, err, len(body), good, allocationBytes)
	}
	for at, c := range map[int]byte{0: 0, 15: 0x80, 17: 1, 23: 1, 24: 1, 31: 1, 48: 1, 63: 1} {
		b := append([]byte{}, body...)
		b[at] = c
		if _, err := parseArena(b); !errors.Is(err, ErrPeer) {
			t.Errorf("ARENA with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
	for kind, n := range map[byte]int{3: len(body), 2: deviceBytes, 1: len(body)} {
		b := append([]byte{}, body[:n]...)
		b[16], b[8], b[9] = kind, 0, 16 // 4 KiB
		if _, err := parseArena(b); !errors.Is(err, errArenaKind) || errors.Is(err, ErrPeer) {
			t.Errorf("kind %d in %d bytes: got %v, want a refusal that is no breach", kind, n, err)
		}
	}
}

func TestEventMessages(t *testing.T) {
	good := eventNote{slot: 3, kind: cudaArena, handle: [64]byte{0: 1, 63: 2}}
	body := good.append(nil)
	if m, err := parseEvent(body); err != nil || m != good {
		t.Fatalf("got %+v, %v, want %+v", m, err, good)
	}
	for at, c := range map[int]byte{0: 0, 4: 0, 5: 1, 72: 1, 79: 1} {
		b := append([]byte{}, body...)
		b[at] = c
		if _, err := parseEvent(b); !errors.Is(err, ErrPeer) {
			t.Errorf("EVENT with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
	if slot, why, err := parseOpened([]byte{3, 0, 0, 0, 1, 0, 0, 0, 'n', 'o'}); slot != 3 || !errors.Is(why, ErrRefused) || err != nil {
		t.Errorf("got %d, %v, %v, want a refusal of event 3", slot, why, err)
	}
	for _, b := range [][]byte{{3, 0, 0, 0, 2, 0, 0, 0}, {3, 0, 0, 0, 1, 0, 0, 0, 0xff}} {
		if _, _, err := parseOpened(b); !errors.Is(err, ErrPeer) {
			t.Errorf("OPENED % x: got %v, want ErrPeer", b, err)
		}
	}
}

func TestDeviceOffers(t *testing.T) {
	good := offer{serial: 1, arena: 2, bytes: 16, generation: 1, dt: dtype.F32, layout: shape.RowMajor(shape.MustOf(4)), device: cudaMemory, mark: mark{7, 9}}
	body := good.append(nil)
	if m, err := parseOffer(body, ""); err != nil || m != good {
		t.Fatalf("got %+v, %v, want %+v", m, err, good)
	}
	for at, c := range map[int]byte{41: hostMemory, 42: 1, 44: flagInline, 56: 0} { // events of the host, a number, inline, a record of no event
		b := append([]byte{}, body...)
		b[at] = c
		if _, err := parseOffer(b, ""); !errors.Is(err, ErrPeer) {
			t.Errorf("OFFER with %d at %d: got %v, want ErrPeer", c, at, err)
		}
	}
}

// TestNoDevice: the reason says which device it is, and what this program
// lacks.
func TestNoDevice(t *testing.T) {
	_, err := deviceOf(UUID{1})
	if err == nil || !strings.Contains(err.Error(), "this arena is on device GPU-01000000-") || !strings.Contains(err.Error(), "drives no devices") {
		t.Errorf("got %v, want the device and that this program drives none", err)
	}
}
