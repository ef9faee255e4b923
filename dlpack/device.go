package dlpack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Stream is a queue of work of a device, as a consumer of __dlpack__ names it:
// a CUstream or hipStream_t as a number, or one of the constants.
type Stream int64

// The streams that have no address.
const (
	NoSync           Stream = -1 // nothing waits: the consumer makes sure itself that the bytes are ready
	LegacyStream     Stream = 1  // CUDA's legacy default stream
	PerThreadStream  Stream = 2  // CUDA's default stream of the thread that makes the call
	unspecified      Stream = 0  // the default stream: the rule of __dlpack__ for a consumer that names none
	firstRealAddress        = 3
)

// Check reports whether a consumer may name the stream to a producer on a
// device of that type. CUDA's 0 could be either of its default streams; 1 and 2
// have no meaning for ROCm, whose default stream is 0. Host memory has no
// streams.
func (s Stream) Check(t DeviceType) error {
	switch {
	case t.onHost():
		return fmt.Errorf("got a stream, want none for host memory: %w", tensor.ErrUnsupported)
	case s == NoSync || s >= firstRealAddress:
		return nil
	case s == 0 && (t == CUDA || t == CUDAManaged):
		return fmt.Errorf("got stream 0 for %s, want 1 for the legacy default stream, 2 for that of the thread, or a handle: %w", t, tensor.ErrUnsupported)
	case t == ROCM && (s == LegacyStream || s == PerThreadStream):
		return fmt.Errorf("got stream %d for %s, want 0 for the default stream, or a handle: %w", s, t, tensor.ErrUnsupported)
	case s < 0:
		return fmt.Errorf("got stream %d for %s, want -1 for no synchronisation, or a handle: %w", s, t, tensor.ErrUnsupported)
	}
	return nil
}

// Exchanger is what the engine of a device ([memory.Engine]) implements so that
// tensors of the device can be exchanged. Package cuda's does. Programs do not
// need it.
type Exchanger interface {
	// Place returns DLPack's name of the device that the bytes are on; for nil,
	// of the device itself.
	Place(r *memory.Remote) Device
	// Lend prepares bytes for foreign work, which may write them if write is
	// true. It makes later work of the stream to, or of the default stream if
	// that is 0, wait for the work that must come before; for NoSync nothing
	// waits. From then on the engine takes into account that foreign work may
	// use the bytes. It is called for every export, and does not wait itself.
	Lend(r *memory.Remote, to Stream, write bool) error
	// Receive makes a buffer of foreign bytes. After an error the caller still
	// has to give them back.
	Receive(l Loan) (*memory.Buffer, error)
	// Current returns the stream on which the device's own work runs that names
	// no other: a producer makes it wait for what wrote an import.
	Current() Stream
}

// Loan is bytes of another library that a device takes over for a time.
type Loan struct {
	Device  Device // as the producer says
	Address uintptr
	Bytes   int
	Flags   memory.Flags
	Ready   Stream // work that is submitted to it now sees the bytes; 0: no stream is known, NoSync: everything does
	End     func() // gives the bytes back; to be called once, when all work that uses them is complete
}

// exchanger returns the engine of a device.
func exchanger(d *memory.Device) (Exchanger, error) {
	if x, ok := d.Engine().(Exchanger); ok {
		return x, nil
	}
	return nil, fmt.Errorf("got a tensor on %s, want one on a device that DLPack has, or in host memory (tensor.To copies it): %w", d, tensor.ErrDevice)
}

// lend applies the stream rule to an export of t, which the caller has taken.
func lend(t *tensor.Tensor, to Stream, write bool) error {
	r := t.Remote()
	if r == nil {
		return nil
	}
	x, err := exchanger(r.Device)
	if err != nil {
		return err
	}
	return x.Lend(r, to, write)
}

// DeviceOf returns the device that a consumer is told for t: what
// __dlpack_device__ returns.
func DeviceOf(t *tensor.Tensor) (Device, error) {
	d := t.Device()
	if d == nil {
		data, _ := t.UnsafeBytes()
		return hostPlace(data), nil
	}
	x, err := exchanger(d)
	if err != nil {
		return Device{}, fmt.Errorf("dlpack device: %w", err)
	}
	return x.Place(t.Remote()), nil
}

// Open returns the open device of that name, nil if there is none. Managed
// memory is memory of a CUDA device.
func Open(place Device) *memory.Device {
	if list := open(place); len(list) > 0 {
		return list[0]
	}
	return nil
}

// open lists the open devices of that name: several only if there are several
// drivers, as in tests.
func open(place Device) (list []*memory.Device) {
	if place.Type == CUDAManaged {
		place.Type = CUDA
	}
	for _, d := range memory.Devices() {
		if x, ok := d.Engine().(Exchanger); ok && x.Place(nil) == place {
			list = append(list, d)
		}
	}
	return list
}

// noneOpen is the error for a device that is not open.
func noneOpen(place Device) error {
	var names []string
	for _, d := range memory.Devices() {
		if x, ok := d.Engine().(Exchanger); ok {
			p := x.Place(nil)
			names = append(names, fmt.Sprintf("%s %d", p.Type, p.ID))
		}
	}
	known := "none is"
	if len(names) > 0 {
		known = strings.Join(slices.Compact(names), ", ")
	}
	return fmt.Errorf("got a tensor on %s %d, want one in host memory or on a device that is open (%s): %w", place.Type, place.ID, known, tensor.ErrUnsupported)
}

// StreamFor returns the stream that a consumer of ours names to the producer of
// a tensor on that device: that of [ReadyOn] if it is among the options of the
// import, and otherwise the one that [ReadyOnCurrent] stands for.
func StreamFor(place Device, opts ...ImportOption) (Stream, error) {
	in := importing{}
	in.apply(opts)
	d := Open(place)
	if in.device != nil {
		d = in.device
	}
	if d == nil {
		return 0, fmt.Errorf("dlpack stream: %w", noneOpen(place))
	}
	x, err := exchanger(d)
	if err != nil {
		return 0, fmt.Errorf("dlpack stream: %w", err)
	}
	if in.ready != unspecified {
		return in.ready, nil
	}
	return x.Current(), nil
}

// receive makes a buffer of bytes that a producer says are on a device.
func (in importing) receive(l Loan) (*memory.Buffer, error) {
	list := open(l.Device)
	if in.device != nil {
		if !slices.Contains(list, in.device) {
			return nil, fmt.Errorf("got a tensor on %s %d, want one on %s (tensor.To copies to another device): %w", l.Device.Type, l.Device.ID, in.device, tensor.ErrDevice)
		}
		list = []*memory.Device{in.device}
	}
	err := noneOpen(l.Device)
	for _, d := range list {
		x := d.Engine().(Exchanger)
		if l.Ready = in.ready; in.current {
			l.Ready = x.Current()
		}
		if l.Ready != unspecified {
			if err := l.Ready.Check(l.Device.Type); err != nil {
				return nil, err
			}
		}
		var buf *memory.Buffer
		if buf, err = x.Receive(l); err == nil {
			return buf, nil
		}
	}
	return nil, err
}

// check checks the device of a struct; whether it is open is known later.
func (d Device) check() error {
	switch {
	case !d.Type.IsKnown():
		return fmt.Errorf("got device type %d, want one of DLPack's: %w", d.Type, tensor.ErrUnsupported)
	case !d.Type.onHost() && len(open(d)) == 0:
		return noneOpen(d)
	case d.ID < 0:
		return fmt.Errorf("got device %s %d, want a number of 0 or more: %w", d.Type, d.ID, tensor.ErrCorrupt)
	}
	return nil
}
