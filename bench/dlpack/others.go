package main

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// conversions are loops in Python: a name, a note, the module that the
// statement imports, the statement.
var conversions = []struct{ name, note, module, statement string }{
	{"numpy: from_dlpack of its own", "Python", "numpy", "np.from_dlpack(a)"},
	{"numpy: from_dlpack of ours", "Python", "numpy", "np.from_dlpack(x)"},
	{"tvm-ffi: from_dlpack of its own", "Python", "tvm_ffi", "tvm_ffi.from_dlpack(v)"},
	{"tvm-ffi: from_dlpack of ours", "Python, C exchange API", "tvm_ffi", "tvm_ffi.from_dlpack(x)"},
	{"tvm-ffi: from_dlpack of numpy's", "Python", "tvm_ffi", "tvm_ffi.from_dlpack(a)"},
}

// others are the conversions of other libraries, called from Python and from C.
func (s *subjects) others(python string) ([]*bench, error) {
	in, err := capi.FindPython(context.Background(), python)
	if err != nil {
		return nil, err
	}
	py, err := capi.OpenPython(in)
	if err != nil {
		return nil, err
	}
	if err := py.Set("x", s.shared); err != nil {
		return nil, err
	}
	if err := py.Run("import timeit, numpy as np\na = np.zeros((2, 3, 4), np.float32)\ntook = np.zeros(1)"); err != nil {
		return nil, err
	}
	var cases []*bench
	for _, c := range conversions {
		if err := py.Run("import " + c.module); err != nil {
			continue
		}
		if c.module == "tvm_ffi" {
			s.check(py.Run("v = tvm_ffi.from_dlpack(a)"))
		}
		b := newBench(c.name, c.note, 2000, func(_, n int) time.Duration {
			s.check(py.Run(fmt.Sprintf("took[0] = timeit.timeit(lambda: %s, number=%d)", c.statement, n)))
			return s.seconds(py)
		})
		b.alone = true
		cases = append(cases, b)
	}
	tvm, err := s.tvmInC(py)
	if err != nil {
		return cases, err
	}
	return append(cases, tvm), nil
}

// seconds reads what Python measured.
func (s *subjects) seconds(py *capi.Python) time.Duration {
	t, err := py.Get("took")
	if err != nil {
		s.check(err)
		return 0
	}
	defer t.Release()
	v, err := tensor.Values[float64](t)
	if err != nil {
		s.check(err)
		return 0
	}
	return time.Duration(v[0] * 1e9)
}

// tvmInC is tvm-ffi's own export, without Python in between.
func (s *subjects) tvmInC(py *capi.Python) (*bench, error) {
	if err := py.Run("import glob, os, tvm_ffi\npath = np.frombuffer(glob.glob(os.path.join(os.path.dirname(tvm_ffi.__file__), 'lib', 'libtvm_ffi.*'))[0].encode(), np.uint8)"); err != nil {
		return nil, err
	}
	path, err := py.Get("path")
	if err != nil {
		return nil, err
	}
	defer path.Release()
	text, err := tensor.Values[uint8](path)
	if err != nil {
		return nil, err
	}
	tvm, err := capi.Open(string(text))
	if err != nil {
		return nil, err
	}
	lib, err := compiled()
	if err != nil {
		return nil, err
	}
	var fn [4]uintptr
	for i, name := range []string{"TVMFFITensorToDLPackVersioned", "TVMFFITensorFromDLPackVersioned"} {
		if fn[i], err = tvm.Symbol(name); err != nil {
			return nil, err
		}
	}
	for i, name := range []string{"tvm_import", "tvm_export"} {
		if fn[i+2], err = lib.Symbol(name); err != nil {
			return nil, err
		}
	}
	m, err := dlpack.ExportCopy(s.shared) // its tensor lives as long as the process
	if err != nil {
		return nil, err
	}
	cell, err := memory.Alloc(8, memory.Scratch)
	if err != nil {
		return nil, err
	}
	defer cell.Release()
	*(*uintptr)(unsafe.Pointer(&cell.Bytes()[0])) = uintptr(unsafe.Pointer(m))
	j := &job{list: uintptr(unsafe.Pointer(&cell.Bytes()[0])), to: fn[0], from: fn[1]}
	if failed := call(fn[2], j); failed != 0 {
		return nil, fmt.Errorf("tvm-ffi did not take a tensor: %d", failed)
	}
	object := j.tvmsObject
	b := newBench("tvm-ffi: export and delete of its own", "C", perTurn, func(_, n int) time.Duration {
		return call(fn[3], &job{n: int64(n), to: fn[0], tvmsObject: object})
	})
	b.alone = true
	return b, nil
}
