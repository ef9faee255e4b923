package dlpack

import (
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func TestRequest(t *testing.T) {
	memorytest.Check(t)
	v := func(major, minor uint32) *Version { return &Version{major, minor} }
	for _, c := range []struct {
		name   string
		r      Request
		legacy bool
		flags  Flags
		copied bool
		refuse string
	}{
		{"bare call", Request{}, true, 0, true, ""},
		{"bare call, writable", Request{Writable: true}, true, 0, false, ""},
		{"bare call, no copy", Request{Copy: CopyNever}, false, 0, false, "takes no copy"},
		{"bare call, no copy, writable", Request{Copy: CopyNever, Writable: true}, true, 0, false, ""},
		{"0.8", Request{MaxVersion: v(0, 8)}, true, 0, true, ""},
		{"1.0", Request{MaxVersion: v(1, 0)}, false, FlagReadOnly, false, ""},
		{"2.5", Request{MaxVersion: v(2, 5)}, false, FlagReadOnly, false, ""},
		{"writable", Request{MaxVersion: v(1, 3), Writable: true}, false, 0, false, ""},
		{"copy", Request{MaxVersion: v(1, 3), Copy: CopyAlways, Writable: true}, false, FlagCopied, true, ""},
		{"no copy", Request{MaxVersion: v(1, 3), Copy: CopyNever}, false, FlagReadOnly, false, ""},
		{"cpu", Request{MaxVersion: v(1, 3), Device: &Device{CPU, 0}}, false, FlagReadOnly, false, ""},
		{"cuda", Request{MaxVersion: v(1, 3), Device: &Device{CUDA, 1}}, false, 0, false, "got device cuda 1, want cpu 0"},
		{"stream", Request{MaxVersion: v(1, 3), Stream: new(NoSync)}, false, 0, false, "got a stream"},
	} {
		x := counting(t)
		a, err := c.r.Export(x)
		if c.refuse != "" {
			wantErr(t, c.name, err, tensor.ErrUnsupported, c.refuse)
			if !x.IsExclusive() {
				t.Errorf("%s: a refused request left an export behind", c.name)
			}
			release(t, x)
			continue
		}
		if err != nil || (a.Legacy != nil) != c.legacy || (a.Versioned != nil) == c.legacy {
			t.Fatalf("%s: got %+v and %v, want the legacy struct: %t", c.name, a, err, c.legacy)
		}
		var d DLTensor
		if c.legacy {
			d = a.Legacy.Tensor
		} else {
			d = a.Versioned.Tensor
			if a.Versioned.Flags != c.flags {
				t.Errorf("%s: got flags %d, want %d", c.name, a.Versioned.Flags, c.flags)
			}
		}
		a.Delete()
		data, _ := x.UnsafeBytes()
		if at := uintptr(unsafe.Pointer(&data[0])); (d.Data != at) != c.copied {
			t.Errorf("%s: got data at %#x, the tensor's are at %#x, want a copy: %t", c.name, d.Data, at, c.copied)
		}
		release(t, x)
	}
}
