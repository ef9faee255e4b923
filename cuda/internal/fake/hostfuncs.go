package fake

import (
	"bytes"
	"runtime"
	"sync"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// hostFuncs are the registered functions; a token is an index plus 1.
var hostFuncs struct {
	sync.Mutex
	all []func(arg uintptr)
}

// RegisterHostFunc returns what stands for f as the function of
// LaunchHostFunc, without a C function. It is never forgotten.
func RegisterHostFunc(f func(arg uintptr)) uintptr {
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	hostFuncs.all = append(hostFuncs.all, f)
	return uintptr(len(hostFuncs.all))
}

// lowestCode is less than the address of any C function, and more than any
// token.
const lowestCode = 1 << 16

// hostFunc returns the function of a token or of the address of a C function;
// nil if there is none.
func hostFunc(fn uintptr) func(arg uintptr) {
	if fn >= lowestCode {
		return func(arg uintptr) { driver.CallHostFunc(fn, arg) }
	}
	hostFuncs.Lock()
	defer hostFuncs.Unlock()
	if fn == 0 || fn > uintptr(len(hostFuncs.all)) {
		return nil
	}
	return hostFuncs.all[fn-1]
}

// patience is how long a call waits for a host function that it started. The
// function is done then, as a rule, so that a run repeats exactly; if it waits
// for a lock of the caller, the caller must go on.
const patience = 20 * time.Millisecond

// callHost starts a host function.
func (m *Machine) callHost(o *op) {
	o.state = opRunning
	m.lanes.observe(o) // the function may tell the host
	m.running.Add(1)
	host, done := o.host, make(chan struct{})
	go func() {
		g := goroutine()
		m.callers.Store(g, true)
		host()
		m.callers.Delete(g)
		m.mu.Lock()
		m.running.Add(-1)
		m.complete(o)
		close(done)
		m.mu.Unlock()
	}()
	m.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	m.mu.Lock()
}

// inHostFunc reports whether a host function makes this call.
func (m *Machine) inHostFunc() bool {
	_, found := m.callers.Load(goroutine())
	return found
}

// goroutine returns the number of this goroutine, as stack traces show it.
func goroutine() string {
	var buf [40]byte
	head := buf[:runtime.Stack(buf[:], false)]
	if f := bytes.Fields(head); len(f) > 1 {
		return string(f[1])
	}
	return ""
}
