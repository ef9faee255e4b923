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

// The resources that peers can make this process spend are bounded for the
// process as a whole, over all of its owners, and divided between peer
// processes, not connections: a process may have at most as much of each
// resource as it leaves free. One process alone can get half of the budget,
// each of n greedy ones 1/(n+1), and a newcomer finds as much free. (These are
// the dynamic thresholds of Choudhury and Hahne, "Dynamic queue length
// thresholds for shared-memory packet switches", 1998.) Hand-overs are not
// counted, only connections, arenas, and messages that wait to be read.

// Budget bounds the resources that all peers together can make this process
// spend. One peer process gets at most half of each.
type Budget struct {
	Connections int   // accepted by listeners; each takes a descriptor
	Arenas      int   // of peers, mapped or not; each file is mapped once
	Mapped      int64 // bytes of these arenas
	Memory      int64 // bytes of questions being answered, of answers that are not read, and of inline tensors that wait
}

// resource is an index into the counts of an account.
type resource uint8

const (
	connections resource = iota
	arenas
	mappedBytes
	memoryBytes
	resources
)

var resourceNames = [resources]string{"connections", "arenas", "bytes of arenas", "bytes of messages that wait"}

// processID is a peer process as the kernel names it. A process without a
// number in this namespace, or with the number of this process (the kernel
// reports that of the maker for both ends of a socket pair), is identified by
// the instance that it states.
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

// account counts the resources of the budget that a peer process has.
type account struct {
	id    processID
	peers int // connections that are charged to it
	used  [resources]int64
	files map[*mappedFile]int // announced arenas of its connections, by file
	free  time.Time           // rests have paid for the work until this time
}

// mappedFile is an arena of another process. It is mapped once, however often
// it is announced.
type mappedFile struct {
	id     fileID
	data   []byte
	region View // of a device's memory; data is nil then
	size   int
	users  int // number of accounts
}

// fileID identifies an arena that is announced more than once: by its file, or
// on a device, whose descriptors have no identity, by what its process says:
// the number of the arena, or the handle of the allocation.
type fileID struct {
	osmem.FileID
	process  processID
	instance Instance
	arena    uint64
	handle   [64]byte // of an allocation
}

// ledger holds the accounts of all peer processes.
type ledger struct {
	mu       sync.Mutex
	limit    [resources]int64
	used     [resources]int64
	accounts map[processID]*account
	files    map[fileID]*mappedFile
}

// processBudget returns the ledger of this process.
var processBudget = sync.OnceValue(func() *ledger {
	return &ledger{limit: defaultBudget().limits(), accounts: map[processID]*account{}, files: map[fileID]*mappedFile{}}
})

func (b Budget) limits() [resources]int64 {
	return [resources]int64{int64(b.Connections), int64(b.Arenas), b.Mapped, b.Memory}
}

const (
	mostArenas  = 8192
	mostMapped  = math.MaxInt64 >> 18 // 32 TiB, a quarter of a process's address space
	mostMemory  = 256 << 20
	fewestFiles = 64
)

func defaultBudget() Budget {
	descriptors, maps := systemLimits()
	return Budget{Connections: max(descriptors/2, fewestFiles), Arenas: min(mostArenas, max(maps/8, fewestFiles)), Mapped: mostMapped, Memory: mostMemory}
}

// SetBudget bounds the resources that the peers of all owners together can make
// this process spend, and returns the previous bounds. A bound of 0 or less
// keeps the previous one. Resources in use are not taken back. The defaults are
// half of the process's limit of descriptors, 8,192 arenas or an eighth of the
// mappings that the system allows (vm.max_map_count), 32 TiB of addresses and
// 256 MiB of memory.
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

// open returns the account of a process for one more connection; close closes
// it for that connection.
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

// forget removes an account without connections and resources. The caller has
// h.mu.
func (h *ledger) forget(a *account) {
	if a.peers == 0 && a.used == [resources]int64{} && h.accounts[a.id] == a {
		delete(h.accounts, a.id)
	}
}

// charge takes n of a resource. It fails with an error that matches
// tensor.ErrLimit.
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

// force takes n of a resource regardless of the budget, for this program's own
// choices; a negative n returns it.
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

// pace records time that was spent on a process's requests outside of
// hand-overs, and returns how long to rest before more of them: all connections
// of a process together get a quarter of a processor. Short rests accumulate.
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
		return min(rest, longRest) // the process's releases and its death wait for the rest too
	}
	return 0
}

const (
	shortRest = 2 * time.Millisecond
	longRest  = 20 * time.Millisecond
)

// mapFile maps an arena of a process, once for all of its announcements. Each
// announcement is charged; the bytes are charged once per process.
func (h *ledger) mapFile(a *account, fd, size int) (*mappedFile, error) {
	id, err := osmem.SharedID(fd)
	if err != nil {
		return nil, err
	}
	return h.mapWith(a, fileID{FileID: id}, size, func() (*mappedFile, error) {
		data, err := osmem.MapShared(fd, size)
		return &mappedFile{data: data}, err
	})
}

// mapWith is mapFile for what open maps.
func (h *ledger) mapWith(a *account, id fileID, size int, open func() (*mappedFile, error)) (*mappedFile, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.take(a, arenas, 1); err != nil {
		return nil, err
	}
	f, err := h.find(a, id, size, open)
	if err != nil {
		h.force(a, arenas, -1)
		return nil, err
	}
	if a.files[f]++; a.files[f] == 1 {
		f.users++
	}
	return f, nil
}

// find returns the mapped file with the id. The caller has h.mu.
func (h *ledger) find(a *account, id fileID, size int, open func() (*mappedFile, error)) (*mappedFile, error) {
	f := h.files[id]
	if f != nil && f.size != size { // it is sealed, so it still has the size at which it was mapped
		return nil, fmt.Errorf("got an arena of %d bytes, want %d", f.size, size)
	}
	if f == nil || a.files[f] == 0 {
		if err := h.take(a, mappedBytes, int64(size)); err != nil {
			return nil, err
		}
	}
	if f != nil {
		return f, nil
	}
	f, err := open()
	if err != nil {
		h.force(a, mappedBytes, -int64(size))
		return nil, err
	}
	f.id, f.size = id, size
	h.files[id] = f
	return f, nil
}

// unmapFile ends one announcement. The last one of all processes unmaps the
// file.
func (h *ledger) unmapFile(a *account, f *mappedFile) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer h.forget(a)
	h.force(a, arenas, -1)
	if a.files[f]--; a.files[f] > 0 {
		return nil
	}
	delete(a.files, f)
	h.force(a, mappedBytes, -int64(f.size))
	if f.users--; f.users > 0 {
		return nil
	}
	delete(h.files, f.id)
	if f.region != nil {
		return f.region.Unmap()
	}
	return osmem.Unmap(f.data)
}

// reserve is the part of the memory budget that one connection has for waiting
// packets. It grows in steps, so that the ledger is seldom locked; the first
// bytes are free. The mutex that guards the packets guards it too.
type reserve struct{ bytes int }

const (
	freeReserve = 128 << 10 // without it a connection would be useless: two large packets
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

// empty returns the whole reserve to the budget.
func (r *reserve) empty(a *account) {
	if r.bytes > 0 {
		processBudget().giveBack(a, memoryBytes, int64(r.bytes))
		r.bytes = 0
	}
}
