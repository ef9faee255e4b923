package fake

import "maps"

// counts are the calls of a machine.
type counts struct {
	all           int
	calls         map[string]int
	synchronising int
}

// synchronising are the calls that wait for work of the device, or that the
// documentation says may wait. MemFree and copies of pageable memory depend on
// their arguments and are counted where they are implemented.
var synchronising = map[string]bool{
	"CtxSynchronize":          true,
	"StreamSynchronize":       true,
	"EventSynchronize":        true,
	"DevicePrimaryCtxRelease": true,
	"MemAlloc":                true,
	"MemAllocManaged":         true,
	"MemHostAlloc":            true,
	"MemFreeHost":             true,
	"MemUnmap":                true,
	"MemSetAccess":            true,
	"ModuleLoadData":          true,
	"ModuleUnload":            true,
	"IpcCloseMemHandle":       true,
}

// add counts a call and returns the number of all calls.
func (c *counts) add(call string) int {
	c.all++
	c.calls[call]++
	if synchronising[call] {
		c.synchronising++
	}
	return c.all
}

// Calls returns how often each method of the driver was called.
func (m *Machine) Calls() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.counts.calls)
}

// CallCount returns how many calls there were.
func (m *Machine) CallCount() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts.all
}

// Synchronising returns how many calls waited for the device, or might have on
// another.
func (m *Machine) Synchronising() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts.synchronising
}

// ResetCalls sets the counts to zero. The numbers that Config.Fail and
// Config.VanishAt see go on.
func (m *Machine) ResetCalls() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.counts.calls)
	m.counts.synchronising = 0
}
