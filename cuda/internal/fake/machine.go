package fake

import (
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// Machine is a driver and its devices. [New] makes one.
type Machine struct {
	cfg  Config
	name string
	id   uint64 // differs from that of every other machine, also in other processes

	mu       sync.Mutex
	initial  bool // Init was not called
	exited   bool
	gone     bool // the devices vanished
	rng      *rand.Rand
	faults   *rand.Rand
	clock    int64 // simulated nanoseconds
	handles  uintptr
	devices  []*device
	contexts map[driver.Context]*context
	streams  []*stream // every stream of every context, in order of creation
	byStream map[driver.Stream]*stream
	loose    []*op // work of no stream
	events   map[driver.Event]*event
	modules  map[driver.Module]*module
	funcs    map[driver.Function]*function
	graphs   map[driver.Graph]*graph
	execs    map[driver.Exec]*executable
	pools    map[driver.Pool]*device

	space    space
	memory   map[driver.Memory]*physical
	hosts    map[uintptr]*area // page-locked memory
	imported importer
	closing  []*backing // of destroyed events, while work may wait for them

	lanes   lanes
	pace    pace
	counts  counts
	reports []Report
	lost    []string // objects that their context took along
	urgent  int      // pending work that somebody waits for outside of the machine
	ticking bool
	running atomic.Int32 // host functions
	callers sync.Map     // the goroutines of host functions
}

var _ driver.Driver = (*Machine)(nil)

// machines makes the ids of the machines of this process differ.
var machines atomic.Uint64

// New returns a machine.
func New(cfg Config) *Machine {
	cfg.complete()
	id := machines.Add(1)
	m := &Machine{
		cfg: cfg, id: uint64(os.Getpid())<<32 | id, initial: true,
		name:     fmt.Sprintf("fake CUDA driver (seed %d)", cfg.Seed),
		rng:      rand.New(rand.NewPCG(cfg.Seed, 1)),
		faults:   rand.New(rand.NewPCG(cfg.Seed, 2)),
		handles:  0x1000,
		contexts: map[driver.Context]*context{},
		byStream: map[driver.Stream]*stream{},
		events:   map[driver.Event]*event{},
		modules:  map[driver.Module]*module{},
		funcs:    map[driver.Function]*function{},
		graphs:   map[driver.Graph]*graph{},
		execs:    map[driver.Exec]*executable{},
		pools:    map[driver.Pool]*device{},
		memory:   map[driver.Memory]*physical{},
		hosts:    map[uintptr]*area{},
	}
	m.counts.calls = map[string]int{}
	m.space.init()
	if cfg.Mode == Random {
		m.pace = pace(m.choose(int(paces)))
	}
	for i := range cfg.Devices {
		d := &device{ordinal: i, total: cfg.Bytes, pool: driver.Pool(m.handle())}
		m.devices = append(m.devices, d)
		m.pools[d.pool] = d
	}
	return m
}

// Name implements [driver.Driver].
func (m *Machine) Name() string { return m.name }

// handle returns a handle that no object has had: a stale one is found.
func (m *Machine) handle() uintptr {
	m.handles += 0x10
	return m.handles
}

// choose decides for the scheduler.
func (m *Machine) choose(n int) int {
	if n <= 1 {
		return 0
	}
	if m.cfg.Choose != nil {
		return m.cfg.Choose(n)
	}
	return m.rng.IntN(n)
}

// begin starts a call that needs no context: it locks the machine, counts the
// call, and lets the scheduler run work. Without an error the caller ends the
// call with m.end.
func (m *Machine) begin(call string) error {
	if m.running.Load() > 0 && m.inHostFunc() {
		m.mu.Lock()
		m.report(Misuse, "%s is called by a host function", call)
		m.mu.Unlock()
		return fail(call, driver.NotPermitted)
	}
	m.mu.Lock()
	m.clock += 1000
	if r := m.admit(call); r != driver.Success {
		m.mu.Unlock()
		return fail(call, r)
	}
	if call != "DriverGetVersion" {
		m.step()
	}
	return nil
}

// admit counts a call and says whether it fails before it begins.
func (m *Machine) admit(call string) driver.Result {
	n := m.counts.add(call)
	if m.cfg.VanishAt > 0 && n >= m.cfg.VanishAt {
		m.vanish()
	}
	if m.exited {
		return driver.Deinitialized
	}
	if r := m.inject(call, n); r != driver.Success {
		return r
	}
	if call == "Init" || call == "DriverGetVersion" {
		return driver.Success
	}
	if m.initial {
		return driver.NotInitialized
	}
	if m.gone {
		return driver.DeviceUnavailable
	}
	return driver.Success
}

// end ends a call.
func (m *Machine) end() {
	m.step()
	if m.urgent == 0 {
		for _, b := range m.closing {
			b.close()
		}
		m.closing = nil
	}
	m.mu.Unlock()
}

// in starts a call in a context.
func (m *Machine) in(call string, handle driver.Context) (*context, error) {
	if err := m.begin(call); err != nil {
		return nil, err
	}
	c := m.contexts[handle]
	r := driver.Success
	switch {
	case m.gone:
		r = driver.DeviceUnavailable
	case c == nil:
		r = driver.InvalidContext
	default:
		r = c.lost
	}
	if r != driver.Success {
		m.mu.Unlock()
		return nil, fail(call, r)
	}
	return c, nil
}

// on starts a call on a stream of a context.
func (m *Machine) on(call string, handle driver.Context, s driver.Stream) (*context, *stream, error) {
	c, err := m.in(call, handle)
	if err != nil {
		return nil, nil, err
	}
	st := m.stream(c, s)
	if st == nil {
		m.mu.Unlock()
		return nil, nil, fail(call, driver.InvalidHandle)
	}
	return c, st, nil
}

// stream finds a stream of a context; 0 is the default stream.
func (m *Machine) stream(c *context, s driver.Stream) *stream {
	switch s {
	case 0, driver.LegacyStream:
		return c.legacy
	case driver.PerThreadStream:
		return c.perThread
	}
	st := m.byStream[s]
	if st == nil || st.ctx != c {
		return nil
	}
	return st
}

// fail returns the error of a call, by the name of its C function.
func fail(call string, r driver.Result) error { return driver.Fail("cu"+call, r) }

// The results that only this package returns.
const (
	mapFailed          driver.Result = 205
	illegalState       driver.Result = 401
	captureUnsupported driver.Result = 900
	captureInvalidated driver.Result = 901
	captureMerge       driver.Result = 902
	captureUnmatched   driver.Result = 903
	captureUnjoined    driver.Result = 904
	captureImplicit    driver.Result = 906
)
