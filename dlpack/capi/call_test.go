//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package capi

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func ok[T any](x T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func release(t testing.TB, x *tensor.Tensor) {
	t.Helper()
	if err := x.Release(); err != nil {
		t.Error(err)
	}
}

func wantValues[T interface{ ~float32 | ~int64 }](t testing.TB, x *tensor.Tensor, want ...T) {
	t.Helper()
	got, err := tensor.Float64s(x)
	if err != nil || len(got) != len(want) {
		t.Errorf("values: got %v and %v, want %v", got, err, want)
		return
	}
	for i := range got {
		if got[i] != float64(want[i]) {
			t.Errorf("values: got %v, want %v", got, want)
			return
		}
	}
}

// inC calls a struct's deleter the way C does.
func inC[M dlpack.DLManagedTensor | dlpack.DLManagedTensorVersioned](deleter uintptr, m *M) {
	Call(deleter, uintptr(unsafe.Pointer(m)))
}

// TestDeletersInC runs the three deleters by the C calling convention, on
// living tensors and as the last holder of dead ones.
func TestDeletersInC(t *testing.T) {
	memorytest.Check(t)
	for _, dead := range []bool{false, true} {
		for name, export := range map[string]func(*tensor.Tensor) (del func(), err error){
			"read-only": func(x *tensor.Tensor) (func(), error) {
				m, err := dlpack.Export(x)
				return func() { inC(m.Deleter, m) }, err
			},
			"writable": func(x *tensor.Tensor) (func(), error) {
				m, err := dlpack.ExportWritable(x)
				return func() { inC(m.Deleter, m) }, err
			},
			"legacy": func(x *tensor.Tensor) (func(), error) {
				m, err := dlpack.ExportLegacy(x)
				return func() { inC(m.Deleter, m) }, err
			},
		} {
			before := memory.Stats().Total.Current
			x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
			del := ok(export(x))(t)
			if x.IsExclusive() {
				t.Errorf("%s: the exported tensor is exclusive", name)
			}
			if dead {
				release(t, x)
			}
			if memory.Stats().Total.Current <= before {
				t.Errorf("%s: the bytes are gone while an export is out", name)
			}
			del()
			if dead {
				settled(before)
			} else {
				if !x.IsExclusive() {
					t.Errorf("%s: the tensor is not exclusive after the deleter: %v", name, x.WhyNotWritable())
				}
				wantValues[float32](t, x, 1, 2, 3)
				release(t, x)
			}
			if got := memory.Stats().Total.Current; got != before {
				t.Errorf("%s, released first %t: got %d bytes left, want none", name, dead, got-before)
			}
		}
	}
}

// TestDeleteTwiceInC: the second call undoes itself and is counted; others'
// exports do not notice.
func TestDeleteTwiceInC(t *testing.T) {
	memorytest.Check(t)
	x := ok(tensor.Of([]float32{1}, 1))(t)
	for _, export := range []func(*tensor.Tensor) (*dlpack.DLManagedTensorVersioned, error){dlpack.Export, dlpack.ExportWritable} {
		m := ok(export(x))(t)
		before := dlpack.DeletedTwice()
		for range 3 {
			inC(m.Deleter, m)
		}
		if got := dlpack.DeletedTwice() - before; got != 2 {
			t.Errorf("got %d deletions too many, want 2", got)
		}
		if !x.IsExclusive() {
			t.Errorf("after deletions too many: %v, want an exclusive tensor", x.WhyNotWritable())
		}
	}
	release(t, x)
}

// TestThreadsOfTheSystem lets the system's threads run the deleter itself as
// their whole program, on stacks that Go knows nothing of. It needs no
// compiler.
func TestThreadsOfTheSystem(t *testing.T) {
	memorytest.Check(t)
	create := ok(purego.Dlsym(purego.RTLD_DEFAULT, "pthread_create"))(t)
	join := ok(purego.Dlsym(purego.RTLD_DEFAULT, "pthread_join"))(t)
	before := memory.Stats().Total.Current
	for range 50 {
		x := ok(tensor.Of([]float32{1, 2, 3}, 3))(t)
		var ids [8]uintptr
		for i := range ids {
			m := ok(dlpack.Export(x))(t)
			if r, _, _ := purego.SyscallN(create, uintptr(unsafe.Pointer(&ids[i])), 0, m.Deleter, uintptr(unsafe.Pointer(m))); r != 0 {
				t.Fatalf("pthread_create: error %d", r)
			}
		}
		release(t, x)
		for _, id := range ids {
			purego.SyscallN(join, id, 0)
		}
	}
	if got := settled(before); got != before {
		t.Errorf("after all threads: got %d bytes left, want none", got-before)
	}
}

// compiled is testdata/threads.c as a library.
func compiled(t *testing.T) Library {
	t.Helper()
	var cc string
	for _, name := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		if path, err := exec.LookPath(name); err == nil {
			cc = path
			break
		}
	}
	if cc == "" {
		t.Skip("no C compiler (gcc, clang or cc) to compile testdata/threads.c")
	}
	lib := filepath.Join(t.TempDir(), "threads.so")
	if out, err := exec.Command(cc, "-O2", "-shared", "-fPIC", "-pthread", "-o", lib, "testdata/threads.c").CombinedOutput(); err != nil {
		t.Skipf("%s cannot compile testdata/threads.c: %v\n%s", cc, err, out)
	}
	l, err := Open(lib)
	if err != nil {
		t.Skipf("what %s makes is not for this process: %v", cc, err)
	}
	return l
}

// TestMillionDeletes passes a million exports to threads of C, while the
// collector runs, the profiler interrupts all threads, and tensors are made and
// released. No count may be lost or doubled: live tensors are exclusive
// afterwards, and dead ones freed.
func TestMillionDeletes(t *testing.T) {
	memorytest.Check(t)
	lib := compiled(t)
	deleteAll := ok(lib.Symbol("delete_all"))(t)
	rounds, tensors, each := 16, 64, 1000
	if testing.Short() || invariant.Race {
		rounds = 2
	}
	var profile bytes.Buffer
	if err := pprof.StartCPUProfile(&profile); err == nil {
		defer pprof.StopCPUProfile()
	}
	stop := make(chan struct{})
	var pressure sync.WaitGroup
	pressure.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				sink = make([]byte, 1<<16)
				runtime.GC()
			}
		}
	})
	twice, before := dlpack.DeletedTwice(), memory.Stats().Total.Current
	list := ok(memory.Alloc(8*tensors*each, memory.Scratch))(t) // C reads it: it must not be Go's
	structs := unsafe.Slice((*uintptr)(unsafe.Pointer(&list.Bytes()[0])), tensors*each)
	for range rounds {
		xs := make([]*tensor.Tensor, tensors)
		for i := range xs {
			xs[i] = ok(tensor.Of([]uint8{42, 42, 42}, 3))(t)
			for j := range each {
				structs[j*tensors+i] = uintptr(unsafe.Pointer(ok(dlpack.Export(xs[i]))(t)))
			}
		}
		var deleting sync.WaitGroup
		deleting.Go(func() {
			if bad, _, _ := purego.SyscallN(deleteAll, uintptr(unsafe.Pointer(&structs[0])), uintptr(len(structs)), 8); int32(bad) != 0 {
				t.Errorf("got %d exports with wrong bytes", int32(bad))
			}
		})
		for _, x := range xs[:tensors/2] { // these die under the consumers
			release(t, x)
		}
		deleting.Wait()
		for _, x := range xs[tensors/2:] {
			if !x.IsExclusive() {
				t.Fatalf("after all deletes: %v", x.WhyNotWritable())
			}
			release(t, x)
		}
	}
	close(stop)
	pressure.Wait()
	list.Release()
	if got := settled(before); got != before {
		t.Errorf("after %d deletes: got %d bytes left, want none", rounds*tensors*each, got-before)
	}
	if got := dlpack.DeletedTwice(); got != twice {
		t.Errorf("got %d deletions too many, want none", got-twice)
	}
}

// settled reclaims until as many bytes are held as before, and returns how many
// there are: the timer may have taken ended handles, and not freed them yet.
func settled(before int64) int64 {
	for range 10_000 {
		memory.Reclaim()
		if memory.Stats().Total.Current == before {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return memory.Stats().Total.Current
}

var sink []byte

// TestProducerInC imports what C made: its deleter is called once, on release
// and on refusal.
func TestProducerInC(t *testing.T) {
	memorytest.Check(t)
	lib := compiled(t)
	make, living := ok(lib.Symbol("make"))(t), ok(lib.Symbol("made_and_not_freed"))(t)
	produce := func() *dlpack.DLManagedTensorVersioned {
		m, _, _ := purego.SyscallN(make)
		return (*dlpack.DLManagedTensorVersioned)(pointer(m))
	}
	want := func(what string, n uintptr) {
		t.Helper()
		if got, _, _ := purego.SyscallN(living); got != n {
			t.Errorf("%s: got %d structs in C, want %d", what, got, n)
		}
	}
	m := produce()
	data := m.Tensor.Data
	x := ok(Import(m))(t)
	want("imported", 1)
	wantValues[float32](t, x, 0, 1, 2, 3, 4, 5)
	if b, _ := x.UnsafeBytes(); uintptr(unsafe.Pointer(&b[0])) != data {
		t.Errorf("got bytes at %p, want the producer's at %#x", &b[0], data)
	}
	again := ok(dlpack.Export(x))(t) // what came from C may go on to C
	release(t, x)
	want("released while exported", 1)
	inC(again.Deleter, again)
	memory.Reclaim()
	want("after the export's end", 0)

	m = produce()
	m.Tensor.NDim = -1
	if _, err := Import(m); !errors.Is(err, tensor.ErrShape) {
		t.Errorf("-1 dimensions: got %v, want ErrShape", err)
	}
	want("refused", 0)

	x = ok(Import(produce(), dlpack.AssumeExclusive()))(t)
	v := ok(tensor.Write[float32](x))(t)
	v.Data[0] = 7
	v.Release()
	wantValues[float32](t, x, 7, 1, 2, 3, 4, 5)
	release(t, x)
	want("exclusive", 0)
}
