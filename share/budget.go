package share

import (
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/tenure-go/tenure/internal/osmem"
	"github.com/tenure-go/tenure/tensor"
)

// What peers can make this process spend is bounded for the process as a whole, over all of its owners, and shared out by peer
// process, not by connection: a process may have of each thing at most as much as it leaves free. So one alone gets half of
// the budget, each of n greedy ones gets 1/(n+1) of it, and a newcomer finds as much free. (These are the dynamic thresholds of Choudhury and
// Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998.) Nothing of this is on the way of a
// hand-over: connections, arenas, and what waits because somebody does not read are counted here.

// Budget bounds what all peers together can make this process spend. One peer process gets at most half of each.
type Budget struct {
	Connections int   // that were accepted by listeners: a descriptor each
	Arenas      int   // of peers, mapped or not; each file is mapped once
	Mapped      int64 // bytes of those
	Memory      int64 // bytes of questions being answered, of answers that are not read, and of inline tensors that wait
}

// resource is what is counted.
type resource uint8

const (
	connections resource = iota
	arenas
	mappedBytes
	memoryBytes
	resources
)

var resourceNames = [resources]string{"connections", "arenas", "bytes of arenas", "bytes of messages that wait"}

// processID is a peer process as the kernel names it. One that has no number here, or that of this process (both ends of a
// socket pair have that of its maker), is told from others by what it says it is.
type processID struct {
	pid      int
	instance Instance
}

func processOf(pid int, said Instance) processID {
	if pid == 0 || pid == os.Getpid() {
		return processID{pid, said}
	}
	return processID{pid: pid}
}

// account is what one peer process takes of the budget.
type account struct {
	id    processID
	peers int // connections that are to be charged to it
	used  [resources]int64
	files map[*mappedFile]int // the arenas of its connections that are this file
	free  time.Time           // until when what was done for it has been paid for by rests
}

// mappedFile is an arena of other processes, mapped once however often it was announced.
type mappedFile struct {
	id    osmem.FileID
	data  []byte
	users int // accounts
}

// ledger has the accounts of all peer processes.
type ledger struct {
	mu       sync.Mutex
	limit    [resources]int64
	used     [resources]int64
	accounts map[processID]*account
	files    map[osmem.FileID]*mappedFile
}

// processBudget returns the ledger of what the peers of this process may make it spend.
var processBudget = sync.OnceValue(func() *ledger {
	return &ledger{limit: defaultBudget().limits(), accounts: map[processID]*account{}, files: map[osmem.FileID]*mappedFile{}}
})

func (b Budget) limits() [resources]int64 {
	return [resources]int64{int64(b.Connections), int64(b.Arenas), b.Mapped, b.Memory}
}

const (
	mostArenas  = 8192
	mostMapped  = math.MaxInt64 >> 18 // 32 TiB, a quarter of the addresses that a process has
	mostMemory  = 256 << 20
	fewestFiles = 64
)

func defaultBudget() Budget {
	descriptors, maps := systemLimits()
	return Budget{Connections: max(descriptors/2, fewestFiles), Arenas: min(mostArenas, max(maps/8, fewestFiles)), Mapped: mostMapped, Memory: mostMemory}
}

// SetBudget bounds what the peers of all owners together can make this process spend, and returns the previous bounds.
// A bound of 0 or less leaves the previous one. Nothing that is spent already is taken back. The default is half of the
// descriptors that the process may have, 8,192 arenas or an eighth of the mappings that the system allows
// (vm.max_map_count), 32 TiB of addresses and 256 MiB of memory.
func SetBudget(b Budget) Budget {
	h := processBudget()
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.limit
	for r, limit := range b.limits() {
		if limit > 0 {
			h.limit[r] = limit
		}
	}
	return Budget{Connections: int(l[connections]), Arenas: int(l[arenas]), Mapped: l[mappedBytes], Memory: l[memoryBytes]}
}

// open returns the account of a process for one more connection. close ends that.
func (h *ledger) open(id processID) *account {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.accounts[id]
	if a == nil {
		a = &account{id: id, files: map[*mappedFile]int{}}
		h.accounts[id] = a
	}
	a.peers++
	return a
}

func (h *ledger) close(a *account) {
	h.mu.Lock()
	defer h.mu.Unlock()
	a.peers--
	h.forget(a)
}

// forget ends an account that has no connection and owes nothing. The caller has h.mu.
func (h *ledger) forget(a *account) {
	if a.peers == 0 && a.used == [resources]int64{} && h.accounts[a.id] == a {
		delete(h.accounts, a.id)
	}
}

// charge takes n of a resource, or fails with an error that matches tensor.ErrLimit.
func (h *ledger) charge(a *account, r resource, n int64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.take(a, r, n)
}

// take is charge for a caller that has h.mu.
func (h *ledger) take(a *account, r resource, n int64) error {
	if free := h.limit[r] - h.used[r] - n; a.used[r]+n > free {
		return fmt.Errorf("got %d %s of one process and want %d more, while this process's bound is %d for all and %d are in use: %w",
			a.used[r], resourceNames[r], n, h.limit[r], h.used[r], tensor.ErrLimit)
	}
	h.force(a, r, n)
	return nil
}

// force takes what is this program's own choice; a negative n gives back.
func (h *ledger) force(a *account, r resource, n int64) {
	a.used[r] += n
	h.used[r] += n
}

func (h *ledger) giveBack(a *account, r resource, n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.force(a, r, -n)
	h.forget(a)
}

// pace counts time that was spent on what a process asked for beside hand-overs, and returns how long to rest before more of it:
// all of its connections together get a quarter of a processor. Short rests are saved up.
func (h *ledger) pace(a *account, spent time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if a.free.Before(now) {
		a.free = now
	} else if most := now.Add(time.Second); a.free.After(most) {
		a.free = most
	}
	a.free = a.free.Add(4 * spent)
	if rest := a.free.Sub(now); rest > shortRest {
		return min(rest, longRest) // its releases and its death wait too
	}
	return 0
}

const (
	shortRest = 2 * time.Millisecond
	longRest  = 20 * time.Millisecond
)

// mapFile maps an arena of a process, once for all of its announcements. Each is charged, the bytes once to each process.
func (h *ledger) mapFile(a *account, fd, size int) (*mappedFile, error) {
	id, err := osmem.SharedID(fd)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.take(a, arenas, 1); err != nil {
		return nil, err
	}
	f, err := h.find(a, id, fd, size)
	if err != nil {
		h.force(a, arenas, -1)
		return nil, err
	}
	if a.files[f]++; a.files[f] == 1 {
		f.users++
	}
	return f, nil
}

// find returns the file with the id, mapped. The caller has h.mu.
func (h *ledger) find(a *account, id osmem.FileID, fd, size int) (*mappedFile, error) {
	f := h.files[id]
	if f != nil && len(f.data) != size { // sealed, so that it still has the size that it was mapped with
		return nil, fmt.Errorf("got a memfd of %d bytes, want %d", len(f.data), size)
	}
	if f == nil || a.files[f] == 0 {
		if err := h.take(a, mappedBytes, int64(size)); err != nil {
			return nil, err
		}
	}
	if f != nil {
		return f, nil
	}
	data, err := osmem.MapShared(fd, size)
	if err != nil {
		h.force(a, mappedBytes, -int64(size))
		return nil, err
	}
	f = &mappedFile{id: id, data: data}
	h.files[id] = f
	return f, nil
}

// unmapFile ends one announcement, and with the last one of all processes the mapping.
func (h *ledger) unmapFile(a *account, f *mappedFile) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.forget(a)
	h.force(a, arenas, -1)
	if a.files[f]--; a.files[f] > 0 {
		return nil
	}
	delete(a.files, f)
	h.force(a, mappedBytes, -int64(len(f.data)))
	if f.users--; f.users > 0 {
		return nil
	}
	delete(h.files, f.id)
	return osmem.Unmap(f.data)
}

// reserve is what one connection has of the memory budget for packets that wait. It grows in steps, so that the ledger is
// asked seldom; the first bytes are free. Whoever guards what waits guards it too.
type reserve struct{ bytes int }

const (
	freeReserve = 128 << 10 // a connection is not worth having without: two large packets
	reserveStep = 512 << 10
)

// fits reports whether so many bytes may wait.
func (r *reserve) fits(a *account, waiting int) bool {
	more := waiting - freeReserve - r.bytes
	if more <= 0 {
		return true
	}
	more = (more + reserveStep - 1) / reserveStep * reserveStep
	if processBudget().charge(a, memoryBytes, int64(more)) != nil {
		return false
	}
	r.bytes += more
	return true
}

// empty gives all of it back: nothing waits.
func (r *reserve) empty(a *account) {
	if r.bytes > 0 {
		processBudget().giveBack(a, memoryBytes, int64(r.bytes))
		r.bytes = 0
	}
}
