package fake

import (
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// documented are results that the documentation of a call names, apart from
// those of a program's own mistakes.
var documented = map[string][]driver.Result{
	"Init":                         {driver.NoDevice, driver.SystemNotReady, driver.SystemDriverMismatch},
	"DevicePrimaryCtxRetain":       {driver.OutOfMemory, driver.Unknown},
	"StreamCreate":                 {driver.OutOfMemory},
	"EventCreate":                  {driver.OutOfMemory},
	"MemAddressReserve":            {driver.OutOfMemory, driver.NotPermitted},
	"MemCreate":                    {driver.OutOfMemory, driver.NotPermitted},
	"MemMap":                       {driver.OutOfMemory, driver.NotPermitted},
	"MemExportToShareableHandle":   {driver.NotPermitted, driver.NotSupported},
	"MemImportFromShareableHandle": {driver.NotPermitted, driver.NotSupported},
	"MemAlloc":                     {driver.OutOfMemory},
	"MemAllocManaged":              {driver.OutOfMemory, driver.NotSupported},
	"MemAllocAsync":                {driver.OutOfMemory, driver.NotSupported},
	"MemHostAlloc":                 {driver.OutOfMemory},
	"ModuleLoadData":               {driver.OutOfMemory, driver.InvalidPTX, driver.UnsupportedPTX},
	"LaunchKernel":                 {driver.LaunchOutOfResources, driver.LaunchTimeout},
	"IpcGetMemHandle":              {driver.OutOfMemory, mapFailed},
	"IpcOpenMemHandle":             {mapFailed},
	"IpcCloseMemHandle":            {mapFailed},
	"IpcGetEventHandle":            {driver.OutOfMemory, mapFailed},
	"IpcOpenEventHandle":           {mapFailed, driver.PeerAccessUnsupp},
	"CtxEnablePeerAccess":          {driver.PeerAccessUnsupp},
}

// anyCall are the results of calls that documented does not list.
var anyCall = []driver.Result{driver.InvalidValue, driver.InvalidContext}

// Documented returns the results that FailRate draws from for a call.
func Documented(call string) []driver.Result {
	if r := documented[call]; r != nil {
		return r
	}
	return anyCall
}

// inject returns the result of a call that fails on purpose.
func (m *Machine) inject(call string, n int) driver.Result {
	if m.cfg.Fail != nil {
		if r := m.cfg.Fail(call, n); r != driver.Success {
			return r
		}
	}
	if m.cfg.FailRate > 0 && m.faults.Float64() < m.cfg.FailRate {
		all := Documented(call)
		return all[m.faults.IntN(len(all))]
	}
	return driver.Success
}

// Vanish takes the devices away: every call fails from now on, and work that
// was submitted never runs.
func (m *Machine) Vanish() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.vanish()
}

func (m *Machine) vanish() {
	if m.gone {
		return
	}
	m.gone = true
	for _, c := range m.contexts {
		m.lose(c, driver.DeviceUnavailable)
	}
}

// Exit ends the use of the machine as the death of its process would: every
// later call fails, what other machines opened of its memory is revoked, and
// work that was submitted goes on for Config.SlowExit and then stops. Exit
// returns at once, the channel is closed when all is over.
func (m *Machine) Exit() <-chan struct{} {
	over := make(chan struct{})
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exited {
		close(over)
		return over
	}
	m.exited = true
	m.disown()
	deadline := time.Now().Add(m.cfg.SlowExit)
	go func() {
		defer close(over)
		for time.Now().Before(deadline) {
			m.mu.Lock()
			m.runAny()
			m.mu.Unlock()
			time.Sleep(100 * time.Microsecond)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.dismantle()
	}()
	return over
}

// dismantle drops all work and memory.
func (m *Machine) dismantle() {
	for _, c := range m.contexts {
		m.lose(c, driver.Deinitialized)
	}
	for _, e := range m.events {
		if e.shared != nil {
			e.shared.close(m)
		}
	}
	for _, a := range m.space.areas() {
		m.dropArea(a)
	}
	for h, p := range m.memory {
		p.refs -= p.holds - 1
		delete(m.memory, h)
		m.release(p)
	}
	clear(m.events)
	m.space.reserved = nil
}
