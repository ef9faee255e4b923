package main

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/memory"
)

//go:embed loops/loops.c
var loops []byte

// job is the argument of a loop in C.
type job struct {
	list                       uintptr
	n, nanos                   int64
	unit, exports, busy, dead  uint64
	head, to, from, tvmsObject uintptr
}

// compiled is loops.c as a library.
func compiled() (capi.Library, error) {
	cc := ""
	for _, name := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		if path, err := exec.LookPath(name); err == nil && cc == "" {
			cc = path
		}
	}
	if cc == "" {
		return capi.Library{}, errors.New("no C compiler")
	}
	dir, err := os.MkdirTemp("", "tenure-dlpack")
	if err != nil {
		return capi.Library{}, err
	}
	defer os.RemoveAll(dir)
	source, lib := filepath.Join(dir, "loops.c"), filepath.Join(dir, "loops.so")
	if err := os.WriteFile(source, loops, 0o600); err != nil {
		return capi.Library{}, err
	}
	if out, err := exec.Command(cc, "-O2", "-shared", "-fPIC", "-o", lib, source).CombinedOutput(); err != nil {
		return capi.Library{}, fmt.Errorf("%s: %w\n%s", cc, err, out)
	}
	return capi.Open(lib)
}

// call runs a function of loops.c and returns the time that it measured.
func call(fn uintptr, j *job) time.Duration {
	capi.Call(fn, uintptr(unsafe.Pointer(j))) // which makes j escape
	return time.Duration(j.nanos)
}

func (s *subjects) inC() ([]*bench, error) {
	lib, err := compiled()
	if err != nil {
		return nil, err
	}
	var missing error
	symbol := func(name string) uintptr {
		p, err := lib.Symbol(name)
		missing = errors.Join(missing, err)
		return p
	}
	byDeleter, inC, pair, fresh := symbol("delete_by_deleter"), symbol("delete_in_c"), symbol("pair"), symbol("fresh")
	setRules := symbol("set_rules")
	if missing != nil {
		return nil, missing
	}
	buf, err := memory.Alloc(64, memory.Scratch)
	if err != nil {
		return nil, err
	}
	defer buf.Release()
	h, err := buf.NewHandle()
	if err != nil {
		return nil, err
	}
	defer h.Release()
	call(setRules, &job{unit: memory.ForeignUnit, exports: memory.ForeignExports, busy: memory.ForeignBusy, dead: memory.ForeignDead, head: h.Foreign().Dead})

	drain := func(fn uintptr) func(w, n int) time.Duration {
		return func(w, n int) time.Duration {
			list := s.export(w, n)
			return call(fn, &job{list: address(list), n: int64(n)})
		}
	}
	one := func(fn uintptr) func(w, n int) time.Duration {
		return func(w, n int) time.Duration {
			list := s.export(w, 1)
			defer list[0].Delete(nil)
			return call(fn, &job{list: address(list), n: int64(n)})
		}
	}
	return []*bench{
		newBench("delete, from C", "the deleter in Go assembly; goal 1.5 of the next", perTurn, drain(byDeleter)),
		newBench("delete, the same written in C", "gcc -O2", perTurn, drain(inC)),
		newBench("export and delete, from C", "a compare-and-swap in C, then our deleter", perTurn, one(pair)),
		newBench("export and delete, fresh struct in C", "malloc, fill, free", perTurn, one(fresh)),
	}, nil
}

func address(list []*dlpack.DLManagedTensorVersioned) uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(list)))
}
