package dlpack

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// station is a device of tests, "cuda 7" for consumers, which notes how its
// tensors are exchanged. Its work is done when a call returns.
type station struct {
	mem *memory.Device

	mu       sync.Mutex
	bytes    map[uintptr][]byte
	next     uintptr
	lent     []string // calls of Lend
	received []Loan
	managed  bool  // what it allocates
	fail     error // of Lend, Receive and copies to the host
}

// far is a station's record of bytes.
type far struct {
	memory.Remote
	s       *station
	end     func() // of a loan
	managed bool
}

func (f *far) GiveBack() {
	f.s.mu.Lock()
	delete(f.s.bytes, f.Address)
	f.s.mu.Unlock()
	if f.end != nil {
		f.end()
	}
}

func newStation(t testing.TB) *station {
	t.Helper()
	s := &station{bytes: map[uintptr][]byte{}, next: 1 << 46}
	var err error
	if s.mem, err = memory.NewDevice("station", s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		memory.Reclaim()
		if err := s.mem.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *station) Alloc(bytes int, p memory.Purpose) (*memory.Buffer, error) {
	s.mu.Lock()
	f := &far{s: s, managed: s.managed}
	f.Remote = memory.Remote{Device: s.mem, Address: s.next, Keeper: f}
	s.bytes[s.next] = make([]byte, bytes)
	s.next += uintptr(bytes+511) / 256 * 256
	s.mu.Unlock()
	return s.mem.Own(&f.Remote, bytes, p)
}

func (s *station) at(b *memory.Buffer, at, n int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes[b.Remote().Address][at : at+n]
}

func (s *station) Upload(_ context.Context, to *memory.Buffer, at int, from []byte) error {
	copy(s.at(to, at, len(from)), from)
	return nil
}

func (s *station) Download(_ context.Context, to []byte, from *memory.Buffer, at int) error {
	copy(to, s.at(from, at, len(to)))
	return s.fail
}

func (s *station) Copy(_ context.Context, to *memory.Buffer, at int, from *memory.Buffer, fromAt, bytes int) error {
	copy(s.at(to, at, bytes), s.at(from, fromAt, bytes))
	return nil
}

func (s *station) Gather(context.Context, *memory.Buffer, int, memory.Spread) error {
	return errors.ErrUnsupported
}

func (s *station) Place(r *memory.Remote) Device {
	if r != nil && r.Keeper.(*far).managed {
		return Device{CUDAManaged, 7}
	}
	return Device{CUDA, 7}
}

func (s *station) Current() Stream { return 0x5000 }

func (s *station) Lend(r *memory.Remote, to Stream, write bool) error {
	if s.fail == nil && s.lent != nil {
		s.lent = append(s.lent, fmt.Sprint(to, write))
	}
	return s.fail
}

func (s *station) Receive(l Loan) (*memory.Buffer, error) {
	if s.fail != nil {
		return nil, s.fail
	}
	s.received = append(s.received, l)
	f := &far{s: s, end: l.End, managed: l.Device.Type == CUDAManaged}
	f.Remote = memory.Remote{Device: s.mem, Address: l.Address, Keeper: f}
	return s.mem.Adopt(&f.Remote, l.Bytes, l.Flags)
}

// send returns a tensor on the station with the elements of x.
func (s *station) send(t testing.TB, x *tensor.Tensor) *tensor.Tensor {
	t.Helper()
	y := ok(tensor.To(context.Background(), x, s.mem))(t)
	release(t, x)
	return y
}

// calls returns the calls of Lend since the last time.
func (s *station) calls() string {
	got := strings.Join(s.lent, ", ")
	s.lent = []string{}
	return got
}

func address(t testing.TB, x *tensor.Tensor) uintptr {
	t.Helper()
	buf, at, err := x.Hold()
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	return buf.Remote().Address + uintptr(at)
}
