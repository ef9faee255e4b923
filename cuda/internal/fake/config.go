package fake

import (
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// Mode says when submitted work runs.
type Mode int

// The modes.
const (
	// Random runs work at every call of the driver: as much as the seed says,
	// in any order that the rules allow.
	Random Mode = iota
	// Eager runs work when it is submitted.
	Eager
	// Lazy runs only what a call waits for.
	Lazy
)

// Config describes a machine. The zero value is one device of 1 GiB whose
// work runs in an order drawn from seed 0.
type Config struct {
	Devices     int    // 0 is 1; -1 is a driver without a device
	Bytes       uint64 // of memory on each device; 0 is 1 GiB
	Granularity uint64 // of virtual memory management; 0 is 2 MiB
	Version     int    // of the driver; 0 is 12090

	// Peer says whether a device can access memory of another; nil is always.
	Peer func(device, peer int) bool
	// NoIPC: handles of memory and events cannot be made or opened.
	NoIPC bool
	// NoExport: memory cannot be exported as a descriptor.
	NoExport bool
	// Registry is a folder for what other processes open. Empty: they open it
	// under /proc, which requires that they see this process there.
	Registry string

	Mode Mode
	Seed uint64
	// Choose returns a number in [0,n) for each decision of the scheduler; nil
	// draws from Seed. Zeros make the machine the most like Eager. Programs
	// with host functions or interprocess events get calls from other
	// goroutines, too.
	Choose func(n int) int
	// Queries is how often an event or a stream that has not completed says so
	// before a query runs work; 0 is 3.
	Queries int
	// Idle is how long a machine waits before it runs work by itself that a
	// host function or another process waits for; 0 is 2 ms.
	Idle time.Duration

	// NoRaces: kernels run faster, in one order of their threads whose races
	// are not found.
	NoRaces bool
	// NoOrder: operations that use the same bytes without an order are not
	// reported. Kernels of different streams whose atomic operations meet need
	// it.
	NoOrder bool
	// ReuseAddresses gives new memory the address that was freed last, if it
	// fits.
	ReuseAddresses bool

	// Fail chooses the result of each call, before it has any effect: n counts
	// all calls, from 1. nil, and Success, do not interfere.
	Fail func(call string, n int) driver.Result
	// FailRate is the share of calls that fail with one of their documented
	// results, drawn from Seed.
	FailRate float64
	// VanishAt is the call from which on the devices are gone; 0 is none.
	VanishAt int
	// SlowExit is how long work goes on after Exit.
	SlowExit time.Duration
}

const (
	defaultBytes       = 1 << 30
	defaultGranularity = 2 << 20
	defaultVersion     = 12090
	defaultQueries     = 3
	defaultIdle        = 2 * time.Millisecond
	versionOfCtxRecord = 12050 // the first driver with cuCtxRecordEvent
)

// complete replaces the zero values that have a meaning of their own.
func (c *Config) complete() {
	switch {
	case c.Devices == 0:
		c.Devices = 1
	case c.Devices < 0:
		c.Devices = 0
	}
	if c.Bytes == 0 {
		c.Bytes = defaultBytes
	}
	if c.Granularity == 0 {
		c.Granularity = defaultGranularity
	}
	if c.Granularity&(c.Granularity-1) != 0 || c.Granularity < 512 {
		panic("fake: Config.Granularity is not a power of two of at least 512")
	}
	if c.Version == 0 {
		c.Version = defaultVersion
	}
	if c.Queries == 0 {
		c.Queries = defaultQueries
	}
	if c.Idle == 0 {
		c.Idle = defaultIdle
	}
}
