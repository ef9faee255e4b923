package fake

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// export makes exportable memory with one byte in it, and a descriptor of it.
func (b *bench) export(v byte) (driver.Pointer, driver.Memory, int) {
	b.t.Helper()
	h, err := b.MemCreate(small, driver.AllocationProp{Exportable: true})
	b.ok(err)
	p := b.mapHandle(h)
	b.put(0, p, bytes.Repeat([]byte{v}, small))
	fd, err := b.MemExportToShareableHandle(h)
	b.ok(err)
	return p, h, fd
}

func (b *bench) mapHandle(h driver.Memory) driver.Pointer {
	b.t.Helper()
	p, err := b.MemAddressReserve(small, 0)
	b.ok(err)
	b.ok(b.MemMap(p, small, 0, h))
	b.ok(b.MemSetAccess(p, small, 0, driver.AccessReadWrite))
	return p
}

// TestExportedMemory: two machines see the same bytes, and the importer keeps
// them after the end of the exporter.
func TestExportedMemory(t *testing.T) {
	a, b := start(t, Config{Mode: Eager}), start(t, Config{Mode: Eager})
	CheckReports(t, a.Machine)
	CheckReports(t, b.Machine)
	p, h, fd := a.export(7)
	i, err := b.MemImportFromShareableHandle(fd)
	b.ok(err)
	q := b.mapHandle(i)
	b.ok(b.MemRelease(i))
	if got := b.get(0, q, small); got[small-1] != 7 {
		t.Errorf("got %d from the other machine, want 7", got[small-1])
	}
	b.ok(b.MemsetD8Async(b.ctx[0], q, 8, 1, 1))
	if got := a.get(0, p, 1); got[0] != 8 {
		t.Errorf("got %d, want what the other machine wrote", got[0])
	}
	same, err := a.MemImportFromShareableHandle(fd) // in the same process
	a.ok(err)
	a.ok(a.MemRelease(same))
	a.ok(a.MemRelease(h))
	<-a.Exit()
	if got := b.get(0, q, 2); got[0] != 8 || got[1] != 7 {
		t.Errorf("got %v after the end of the exporter, want 8 and 7", got)
	}
	late, err := b.MemImportFromShareableHandle(fd) // the descriptor keeps it, too
	b.ok(err)
	b.ok(b.MemRelease(late))
	b.ok(unix.Close(fd))
	b.ok(b.MemUnmap(q, small))
	_, err = b.MemImportFromShareableHandle(fd)
	want(t, err, driver.InvalidValue)
	other, err := os.Create(filepath.Join(t.TempDir(), "x"))
	b.ok(err)
	defer other.Close()
	b.ok(other.Truncate(8 * pageSize))
	_, err = b.MemImportFromShareableHandle(int(other.Fd()))
	want(t, err, driver.InvalidValue)
}

func TestNoExport(t *testing.T) {
	b := start(t, Config{NoExport: true, NoIPC: true, Mode: Eager})
	_, err := b.MemCreate(small, driver.AllocationProp{Exportable: true})
	want(t, err, driver.NotSupported)
	_, err = b.IpcGetMemHandle(b.ctx[0], b.alloc(0, 8))
	want(t, err, driver.NotSupported)
	for _, a := range []driver.Attribute{driver.IPCEventSupported, driver.HandleTypePOSIXDescriptorSupported} {
		if v, err := b.DeviceGetAttribute(a, 0); v != 0 || err != nil {
			t.Errorf("attribute %d: got %d, %v", a, v, err)
		}
	}
}

// pair returns two machines, with the files of the first in a folder or not.
func pairs(t *testing.T, f func(t *testing.T, a, b *bench)) {
	for _, folder := range []string{"", t.TempDir()} {
		f(t, start(t, Config{Mode: Eager, Registry: folder}), start(t, Config{Mode: Eager, Registry: folder}))
		if folder == "" {
			continue
		}
		left, err := os.ReadDir(folder)
		if err != nil || len(left) > 0 {
			t.Errorf("the registry has %v, %v at the end", left, err)
		}
	}
}

func TestLegacyMemory(t *testing.T) {
	pairs(t, func(t *testing.T, a, b *bench) {
		p := a.alloc(0, 1000)
		a.put(0, p, bytes.Repeat([]byte{5}, 900))
		h, err := a.IpcGetMemHandle(a.ctx[0], p)
		a.ok(err)
		if within, err := a.IpcGetMemHandle(a.ctx[0], p+999); within != h || err != nil {
			t.Errorf("got %x, %v for a part of the allocation, want the handle of all, %x", within, err, h)
		}
		_, err = a.IpcGetMemHandle(a.ctx[0], p+1000)
		want(t, err, driver.InvalidValue)
		_, err = a.IpcOpenMemHandle(a.ctx[0], h)
		want(t, err, driver.InvalidContext)
		q, err := b.IpcOpenMemHandle(b.ctx[0], h)
		b.ok(err)
		if again, err := b.IpcOpenMemHandle(b.ctx[0], h); again != q || err != nil {
			t.Errorf("got %#x, %v at the second open, want %#x", uint64(again), err, uint64(q))
		}
		b.reported(Misuse)
		if got := b.get(0, q, 900); got[899] != 5 {
			t.Errorf("got %d, want 5", got[899])
		}
		b.quiet()
		b.get(0, q, 901)
		b.reported(Unwritten)
		b.ok(b.MemsetD8Async(b.ctx[0], q, 6, 1, 1))
		if got := a.get(0, p, 1); got[0] != 6 {
			t.Errorf("got %d, want what the other machine wrote", got[0])
		}
		want(t, b.MemFree(b.ctx[0], q), driver.InvalidValue)
		b.ok(b.IpcCloseMemHandle(b.ctx[0], q))
		b.get(0, q, 1)
		b.ok(b.IpcCloseMemHandle(b.ctx[0], q))
		want(t, b.IpcCloseMemHandle(b.ctx[0], q), driver.InvalidValue)
		b.reported(Misuse)
		a.ok(a.MemFree(a.ctx[0], p))
		_, err = b.IpcOpenMemHandle(b.ctx[0], h)
		want(t, err, mapFailed)
		_, err = b.IpcOpenMemHandle(b.ctx[0], driver.IPCHandle{1})
		want(t, err, driver.InvalidValue)
		a.quiet()
	})
}

// TestFreedWhileImported: memory that its exporter frees while another machine
// has it open is misuse there, and a fault here.
func TestFreedWhileImported(t *testing.T) {
	pairs(t, func(t *testing.T, a, b *bench) {
		p := a.alloc(0, 8)
		a.put(0, p, []byte("abcdefgh"))
		h, err := a.IpcGetMemHandle(a.ctx[0], p)
		a.ok(err)
		q, err := b.IpcOpenMemHandle(b.ctx[0], h)
		b.ok(err)
		b.get(0, q, 8)
		a.ok(a.MemFree(a.ctx[0], p))
		a.reported(Misuse)
		b.ok(b.MemsetD8Async(b.ctx[0], q, 0, 1, 1))
		want(t, b.CtxSynchronize(b.ctx[0]), driver.IllegalAddress)
		if r := b.TakeReports(); len(r) != 1 || !strings.Contains(r[0].Text, "freed") {
			t.Errorf("got reports %v", r)
		}
		b.ok(b.DevicePrimaryCtxRelease(0)) // closes the import
	})
}

// TestEndedWhileImported: what was in the memory of an exporter that has ended
// is undefined. An importer that has ended has nothing open.
func TestEndedWhileImported(t *testing.T) {
	pairs(t, func(t *testing.T, a, b *bench) {
		p := a.alloc(0, 8)
		a.put(0, p, []byte("abcdefgh"))
		h, err := a.IpcGetMemHandle(a.ctx[0], p)
		a.ok(err)
		q, err := b.IpcOpenMemHandle(b.ctx[0], h)
		b.ok(err)
		<-a.Exit()
		if got := b.get(0, q, 8); string(got) == "abcdefgh" {
			t.Errorf("got %q of an exporter that has ended", got)
		}
		b.reported(Unwritten)
		b.ok(b.IpcCloseMemHandle(b.ctx[0], q))
		b.quiet()
	})
	pairs(t, func(t *testing.T, a, b *bench) {
		p := a.alloc(0, 8)
		h, err := a.IpcGetMemHandle(a.ctx[0], p)
		a.ok(err)
		_, err = b.IpcOpenMemHandle(b.ctx[0], h)
		b.ok(err)
		<-b.Exit()
		a.ok(a.MemFree(a.ctx[0], p))
		a.quiet()
	})
}

// TestOpenAfterEnd: what a dead process left in the registry cannot be opened.
func TestOpenAfterEnd(t *testing.T) {
	folder := t.TempDir()
	a, b := start(t, Config{Mode: Eager, Registry: folder}), start(t, Config{Mode: Eager, Registry: folder})
	h, err := a.IpcGetMemHandle(a.ctx[0], a.alloc(0, 8))
	a.ok(err)
	a.mu.Lock()
	a.disown() // as the kernel does; the file stays
	a.mu.Unlock()
	_, err = b.IpcOpenMemHandle(b.ctx[0], h)
	want(t, err, mapFailed)
}

// TestInterprocessEvents: a stream waits for work of another machine, which
// runs by itself.
func TestInterprocessEvents(t *testing.T) {
	for _, mode := range []Mode{Lazy, Random, Eager} {
		a, b := start(t, Config{Mode: mode}), start(t, Config{Mode: mode})
		CheckReports(t, a.Machine)
		CheckReports(t, b.Machine)
		p, _, fd := a.export(0)
		i, err := b.MemImportFromShareableHandle(fd)
		b.ok(err)
		b.ok(unix.Close(fd))
		q := b.mapHandle(i)
		e, err := a.EventCreate(a.ctx[0], driver.EventInterprocess|driver.EventDisableTiming)
		a.ok(err)
		s, r := a.stream(0, driver.StreamNonBlocking), b.stream(0, driver.StreamNonBlocking)
		h, err := a.IpcGetEventHandle(a.ctx[0], e)
		a.ok(err)
		_, err = a.IpcOpenEventHandle(a.ctx[0], h)
		want(t, err, driver.InvalidContext)
		f, err := b.IpcOpenEventHandle(b.ctx[0], h)
		b.ok(err)
		if done, err := b.EventQuery(b.ctx[0], f); !done || err != nil {
			t.Errorf("before the first record: got %v, %v", done, err)
		}
		for v := byte(1); v < 20; v++ {
			a.ok(a.MemsetD8Async(a.ctx[0], p, v, 1, s))
			a.ok(a.EventRecord(a.ctx[0], e, s))
			b.ok(b.StreamWaitEvent(b.ctx[0], r, f))
			out := make([]byte, 1)
			b.ok(b.MemcpyDtoHAsync(b.ctx[0], address(out), q, 1, r))
			if out[0] != v {
				t.Fatalf("mode %d: got %d, want %d", mode, out[0], v)
			}
		}
		// Back: the importer records, the exporter waits.
		b.ok(b.MemsetD8Async(b.ctx[0], q, 99, 1, r))
		b.ok(b.EventRecord(b.ctx[0], f, r))
		a.ok(a.EventSynchronize(a.ctx[0], e))
		if got := a.get(0, p, 1); got[0] != 99 {
			t.Errorf("mode %d: got %d, want 99", mode, got[0])
		}
		b.ok(b.EventDestroy(b.ctx[0], f))
		a.ok(a.EventDestroy(a.ctx[0], e))
	}
}

// TestEventOfTheDead: a wait for a record of a machine that has ended ends.
func TestEventOfTheDead(t *testing.T) {
	a, b := start(t, Config{Mode: Lazy, Idle: time.Hour}), start(t, Config{Mode: Lazy})
	e, err := a.EventCreate(a.ctx[0], driver.EventInterprocess|driver.EventDisableTiming)
	a.ok(err)
	h, err := a.IpcGetEventHandle(a.ctx[0], e)
	a.ok(err)
	f, err := b.IpcOpenEventHandle(b.ctx[0], h)
	b.ok(err)
	a.ok(a.EventRecord(a.ctx[0], e, 1))
	s := b.stream(0, driver.StreamNonBlocking)
	b.ok(b.StreamWaitEvent(b.ctx[0], s, f))
	if done, err := b.StreamQuery(b.ctx[0], s); done || err != nil {
		t.Errorf("got %v, %v, want a stream that waits", done, err)
	}
	<-a.Exit()
	b.ok(b.StreamSynchronize(b.ctx[0], s))
	b.ok(b.EventDestroy(b.ctx[0], f))
}

// TestDestroyedEvent: use of an imported event whose exporter has destroyed it
// is reported.
func TestDestroyedEvent(t *testing.T) {
	a, b := start(t, Config{Mode: Eager}), start(t, Config{Mode: Eager})
	e, err := a.EventCreate(a.ctx[0], driver.EventInterprocess|driver.EventDisableTiming)
	a.ok(err)
	h, err := a.IpcGetEventHandle(a.ctx[0], e)
	a.ok(err)
	f, err := b.IpcOpenEventHandle(b.ctx[0], h)
	b.ok(err)
	a.ok(a.EventDestroy(a.ctx[0], e))
	b.ok(b.StreamWaitEvent(b.ctx[0], 1, f))
	b.reported(Misuse)
	_, err = b.IpcGetEventHandle(b.ctx[0], b.event())
	want(t, err, driver.InvalidValue)
}
