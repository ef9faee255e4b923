package dlpack

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func TestStreamRules(t *testing.T) {
	for _, c := range []struct {
		on      DeviceType
		stream  Stream
		refused string
	}{
		{CUDA, NoSync, ""}, {CUDA, LegacyStream, ""}, {CUDA, PerThreadStream, ""}, {CUDA, 3, ""}, {CUDA, math.MaxInt64, ""},
		{CUDAManaged, LegacyStream, ""}, {ROCM, 0, ""}, {ROCM, NoSync, ""}, {ROCM, 0x7f00, ""},
		{CUDA, 0, "got stream 0 for cuda, want 1 for the legacy default stream, 2"},
		{CUDAManaged, 0, "got stream 0 for cuda_managed, want 1"},
		{CUDA, -2, "got stream -2 for cuda, want -1"}, {CUDA, math.MinInt64, "want -1"},
		{ROCM, 1, "got stream 1 for rocm, want 0"}, {ROCM, 2, "got stream 2 for rocm, want 0"}, {ROCM, -5, "got stream -5 for rocm"},
		{CPU, NoSync, "got a stream, want none for host memory"}, {CPU, 0, "want none"}, {CUDAHost, 1, "want none"}, {ROCMHost, 0, "want none"},
	} {
		err := c.stream.Check(c.on)
		if c.refused == "" {
			if err != nil {
				t.Errorf("stream %d of %s: got %v, want no error", c.stream, c.on, err)
			}
			continue
		}
		wantErr(t, c.on.String(), err, tensor.ErrUnsupported, c.refused)
	}
}

func TestExportOnDevice(t *testing.T) {
	memorytest.Check(t)
	s := newStation(t)
	x := s.send(t, counting(t))
	at := address(t, x)
	m := ok(Export(x))(t)
	if d := m.Tensor; d.Device != (Device{CUDA, 7}) || d.Data != at || d.ByteOffset != 0 || m.Flags != FlagReadOnly {
		t.Errorf("got %+v, want it at %#x of cuda 7", m, at)
	}
	if x.IsExclusive() {
		t.Error("an exported tensor is exclusive")
	}
	m.Delete(nil)
	v := ok(x.Slice(tensor.Range{Start: 1, Stop: 2}))(t)
	m = ok(Export(v))(t)
	if d := m.Tensor; d.Data != at+uintptr(4*v.Layout().Strides()[0]) || d.ByteOffset != 0 {
		t.Errorf("view: got data %#x and offset %d, want the first element", d.Data, d.ByteOffset)
	}
	m.Delete(nil)
	release(t, v)
	v = ok(x.Slice(tensor.Range{}))(t)
	m = ok(Export(v))(t)
	if m.Tensor.Data != 0 {
		t.Errorf("without elements: got data %#x, want NULL", m.Tensor.Data)
	}
	release(t, v)
	m.Delete(nil)
	var d DLTensor
	wantErr(t, "fill", Fill(&d, x), tensor.ErrDevice, "got a tensor on station, want one in host memory")
	release(t, x)
}

// TestLending holds each way to export against what the engine is told.
func TestLending(t *testing.T) {
	memorytest.Check(t)
	s := newStation(t)
	x := s.send(t, counting(t))
	version, on := &Version{1, 3}, Stream(0x77)
	s.calls()
	for _, c := range []struct {
		name   string
		export func() (Answer, error)
		want   string
	}{
		{"read", func() (Answer, error) { m, err := Export(x); return Answer{Versioned: m}, err }, "0 false"},
		{"again", func() (Answer, error) { m, err := Export(x); return Answer{Versioned: m}, err }, "0 false"},
		{"on a stream", func() (Answer, error) { m, err := ExportOn(x, on); return Answer{Versioned: m}, err }, "119 false"},
		{"without", func() (Answer, error) { m, err := ExportOn(x, NoSync); return Answer{Versioned: m}, err }, "-1 false"},
		{"write", func() (Answer, error) { m, err := ExportWritable(x); return Answer{Versioned: m}, err }, "0 true"},
		{"legacy", func() (Answer, error) { m, err := ExportLegacy(x); return Answer{Legacy: m}, err }, "0 true"},
		{"copy", func() (Answer, error) { m, err := ExportCopy(x); return Answer{Versioned: m}, err }, "0 true"},
		{"legacy copy", func() (Answer, error) { m, err := ExportLegacyCopy(x); return Answer{Legacy: m}, err }, "0 true"},
		{"request", func() (Answer, error) { return Request{MaxVersion: version, Stream: &on}.Export(x) }, "119 false"},
		{"request to write", func() (Answer, error) { return Request{MaxVersion: version, Stream: &on, Writable: true}.Export(x) }, "119 true"},
		{"request for a copy", func() (Answer, error) {
			return Request{MaxVersion: version, Stream: &on, Copy: CopyAlways}.Export(x)
		}, "119 true"},
		{"request of an old consumer", func() (Answer, error) { return Request{Stream: &on}.Export(x) }, "119 true"},
		{"request without a stream", func() (Answer, error) { return Request{MaxVersion: version}.Export(x) }, "0 false"},
		{"to the host", func() (Answer, error) {
			return Request{MaxVersion: version, Stream: &on, Device: &Device{CPU, 0}}.Export(x)
		}, ""},
	} {
		a, err := c.export()
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := s.calls(); got != c.want {
			t.Errorf("%s: got calls %q, want %q", c.name, got, c.want)
		}
		a.Delete()
		if !x.IsExclusive() {
			t.Fatalf("%s: after the export: %v", c.name, x.WhyNotWritable())
		}
	}
	s.fail = errors.New("the stream is gone")
	for name, export := range map[string]func() error{
		"cached":   func() error { _, err := Export(x); return err },
		"writable": func() error { _, err := ExportWritable(x); return err },
		"copy":     func() error { _, err := ExportCopy(x); return err },
		"to the host": func() error {
			_, err := Request{MaxVersion: version, Device: &Device{CPU, 0}}.Export(x)
			return err
		},
	} {
		if err := export(); !errors.Is(err, s.fail) || !x.IsExclusive() {
			t.Errorf("%s: got %v and exclusive %t, want the engine's error and no export", name, err, x.IsExclusive())
		}
	}
	s.fail = nil
	release(t, x)
}

func TestCachedExportOnDevice(t *testing.T) {
	memorytest.Check(t)
	s := newStation(t)
	x := s.send(t, counting(t))
	s.lent = nil
	first := ok(ExportOn(x, NoSync))(t)
	for name, export := range map[string]func() (*DLManagedTensorVersioned, error){
		"default": func() (*DLManagedTensorVersioned, error) { return Export(x) },
		"no sync": func() (*DLManagedTensorVersioned, error) { return ExportOn(x, NoSync) },
	} {
		if got := testing.AllocsPerRun(100, func() {
			m, err := export()
			if err != nil || m != first {
				t.Errorf("%s: got %p and %v, want %p", name, m, err, first)
			}
			m.Delete(nil)
		}); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
	first.Delete(nil)
	release(t, x)
}

func TestRequestOnDevice(t *testing.T) {
	memorytest.Check(t)
	s := newStation(t)
	v, on := &Version{1, 3}, func(n Stream) *Stream { return &n }
	for _, c := range []struct {
		name    string
		managed bool
		r       Request
		place   Device
		refused string
	}{
		{"its own device", false, Request{MaxVersion: v, Device: &Device{CUDA, 7}}, Device{CUDA, 7}, ""},
		{"another number", false, Request{MaxVersion: v, Device: &Device{CUDA, 6}}, Device{}, "got device cuda 6, want cuda 7 or cpu 0"},
		{"another type", false, Request{MaxVersion: v, Device: &Device{ROCM, 7}}, Device{}, "got device rocm 7, want cuda 7 or cpu 0"},
		{"the host", false, Request{MaxVersion: v, Device: &Device{CPU, 0}}, Device{CPU, 0}, ""},
		{"an old host", false, Request{Device: &Device{CPU, 0}}, Device{CPU, 0}, ""},
		{"the host, no copy", false, Request{MaxVersion: v, Device: &Device{CPU, 0}, Copy: CopyNever}, Device{}, "takes no copy, want it on cuda 7"},
		{"stream 0", false, Request{MaxVersion: v, Stream: on(0)}, Device{}, "got stream 0 for cuda"},
		{"stream -3", false, Request{MaxVersion: v, Stream: on(-3)}, Device{}, "got stream -3 for cuda"},
		{"managed", true, Request{MaxVersion: v}, Device{CUDAManaged, 7}, ""},
		{"managed, by name", true, Request{MaxVersion: v, Device: &Device{CUDAManaged, 7}, Stream: on(1)}, Device{CUDAManaged, 7}, ""},
		{"managed as the device's", true, Request{MaxVersion: v, Device: &Device{CUDA, 7}, Copy: CopyNever}, Device{CUDA, 7}, ""},
		{"managed, to write", true, Request{MaxVersion: v, Device: &Device{CUDA, 7}, Writable: true}, Device{CUDA, 7}, ""},
		{"a managed copy", true, Request{MaxVersion: v, Device: &Device{CUDAManaged, 7}, Copy: CopyAlways}, Device{}, "takes a copy on cuda_managed 7, want it on cuda"},
		{"managed, elsewhere", true, Request{MaxVersion: v, Device: &Device{CUDA, 1}}, Device{}, "got device cuda 1, want cuda_managed 7, cuda 7 or cpu 0"},
	} {
		s.managed = c.managed
		x := s.send(t, counting(t))
		at := address(t, x)
		a, err := c.r.Export(x)
		if c.refused != "" {
			wantErr(t, c.name, err, tensor.ErrUnsupported, c.refused)
			if !x.IsExclusive() {
				t.Errorf("%s: a refused request left an export behind", c.name)
			}
		} else if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else {
			d := DLTensor{}
			if a.Versioned != nil {
				d = a.Versioned.Tensor
			} else {
				d = a.Legacy.Tensor
			}
			if d.Device != c.place || (d.Data == at) == (c.place.Type == CPU) {
				t.Errorf("%s: got %+v, want it on %s %d", c.name, d, c.place.Type, c.place.ID)
			}
			a.Delete()
		}
		_ = x.Release()
	}
	memory.Reclaim()
}

func TestImportOnDevice(t *testing.T) {
	memorytest.Check(t)
	s := newStation(t)
	other := memorytest.NewDevice(t, "elsewhere")
	onDevice := func(p *producer, place Device) { p.m.Tensor.Device, p.m.Tensor.Data = place, 1<<50 }
	for _, c := range []struct {
		name  string
		place Device
		opts  []ImportOption
		ready Stream
	}{
		{"unknown stream", Device{CUDA, 7}, nil, 0},
		{"managed", Device{CUDAManaged, 7}, nil, 0},
		{"current", Device{CUDA, 7}, []ImportOption{ReadyOnCurrent()}, 0x5000},
		{"by handle", Device{CUDA, 7}, []ImportOption{ReadyOn(0x99), OnDevice(s.mem)}, 0x99},
		{"complete", Device{CUDA, 7}, []ImportOption{ReadyOn(NoSync)}, NoSync},
	} {
		p := produce(t)
		onDevice(p, c.place)
		p.m.Tensor.ByteOffset = 8
		x := p.imported(c.opts...)
		l := s.received[len(s.received)-1]
		if l.Device != c.place || l.Address != 1<<50+8 || l.Bytes != 24 || l.Ready != c.ready || l.Flags != memory.Imported {
			t.Errorf("%s: got loan %+v", c.name, l)
		}
		if x.Device() != s.mem || x.IsExclusive() || ok(DeviceOf(x))(t) != c.place {
			t.Errorf("%s: got it on %s, exclusive %t", c.name, x.Device(), x.IsExclusive())
		}
		m := ok(Export(x))(t)
		release(t, x)
		p.wantDeleted(0)
		m.Delete(nil)
		p.wantDeleted(1)
	}
	for _, c := range []struct {
		name string
		opts []ImportOption
		do   func(*producer)
		kind error
		text string
	}{
		{"not open", nil, func(p *producer) { onDevice(p, Device{CUDA, 3}) }, tensor.ErrUnsupported, "got a tensor on cuda 3, want one in host memory or on a device that is open (cuda 7)"},
		{"negative", nil, func(p *producer) { onDevice(p, Device{CUDA, -7}) }, tensor.ErrUnsupported, "got a tensor on cuda -7"},
		{"rocm", nil, func(p *producer) { onDevice(p, Device{ROCM, 7}) }, tensor.ErrUnsupported, "got a tensor on rocm 7"},
		{"another device", []ImportOption{OnDevice(other.Device)}, func(p *producer) { onDevice(p, Device{CUDA, 7}) }, tensor.ErrDevice, "got a tensor on cuda 7, want one on elsewhere"},
		{"stream -9", []ImportOption{ReadyOn(-9)}, func(p *producer) { onDevice(p, Device{CUDA, 7}) }, tensor.ErrUnsupported, "got stream -9"},
		{"NULL", nil, func(p *producer) { onDevice(p, Device{CUDA, 7}); p.m.Tensor.Data = 0 }, tensor.ErrCorrupt, "got data at address 0x0"},
		{"unaligned", nil, func(p *producer) { onDevice(p, Device{CUDA, 7}); p.m.Tensor.Data++ }, tensor.ErrLayout, "want a multiple of 4"},
		{"the engine refuses", nil, func(p *producer) { onDevice(p, Device{CUDA, 7}); s.fail = tensor.ErrDevice }, tensor.ErrDevice, "another device"},
	} {
		p := produce(t)
		c.do(p)
		_, err := Import(p.m, p.call, c.opts...)
		wantErr(t, c.name, err, c.kind, c.text)
		p.wantDeleted(1)
		s.fail = nil
	}
	if _, err := StreamFor(Device{CUDA, 3}); err == nil || !strings.Contains(err.Error(), "got a tensor on cuda 3") {
		t.Errorf("stream of a device that is not open: got %v", err)
	}
	if got := ok(StreamFor(Device{CUDA, 7}, ReadyOn(0x42)))(t); got != 0x42 {
		t.Errorf("got stream %d, want that of the option", got)
	}
	if got := ok(StreamFor(Device{CUDAManaged, 7}))(t); got != 0x5000 {
		t.Errorf("got stream %d, want the current one", got)
	}
}

// TestOtherDevice: a device whose engine exchanges nothing.
func TestOtherDevice(t *testing.T) {
	memorytest.Check(t)
	d := memorytest.NewDevice(t, "elsewhere")
	x := ok(tensor.To(t.Context(), counting(t).Reuse(), d.Device))(t)
	const text = "got a tensor on elsewhere, want one on a device that DLPack has"
	_, err := Export(x)
	wantErr(t, "export", err, tensor.ErrDevice, text)
	_, err = Request{MaxVersion: &Version{1, 3}, Stream: new(NoSync)}.Export(x)
	wantErr(t, "request", err, tensor.ErrDevice, text)
	_, err = DeviceOf(x)
	wantErr(t, "device", err, tensor.ErrDevice, text)
	release(t, x)
}

func TestPageLocked(t *testing.T) {
	memorytest.Check(t)
	x, y := counting(t), counting(t)
	data, _ := x.UnsafeBytes()
	unlock := PageLocked(data, Device{Type: CUDAHost})
	v := ok(x.Slice(tensor.Range{Start: 1, Stop: 2}))(t)
	for _, c := range []struct {
		name  string
		x     *tensor.Tensor
		r     Request
		place DeviceType
	}{
		{"page-locked", x, Request{}, CUDAHost},
		{"a part", v, Request{}, CUDAHost},
		{"as plain memory", x, Request{Device: &Device{CPU, 0}, Copy: CopyNever}, CPU},
		{"by name", x, Request{Device: &Device{CUDAHost, 0}, Copy: CopyNever}, CUDAHost},
		{"a copy", x, Request{Copy: CopyAlways}, CPU},
		{"not locked", y, Request{}, CPU},
	} {
		c.r.MaxVersion = &Version{1, 3}
		a := ok(c.r.Export(c.x))(t)
		if got := a.Versioned.Tensor.Device; got != (Device{Type: c.place}) {
			t.Errorf("%s: got %s %d, want %s 0", c.name, got.Type, got.ID, c.place)
		}
		a.Delete()
	}
	if got := ok(DeviceOf(v))(t); got.Type != CUDAHost {
		t.Errorf("device of a part: got %s", got.Type)
	}
	if _, err := (Request{MaxVersion: &Version{1, 3}, Stream: new(NoSync)}).Export(x); err == nil {
		t.Error("a stream for page-locked memory: got no error")
	}
	unlock()
	if got := ok(DeviceOf(v))(t); got.Type != CPU {
		t.Errorf("after the end: got %s, want cpu", got.Type)
	}
	release(t, v)
	release(t, x)
	release(t, y)
}
