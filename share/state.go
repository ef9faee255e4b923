package share

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure/tensor"
)

// State is a snapshot of an owner: its arenas, blocks and names, and the leases
// of its peers. The answer to LIST is the same in JSON, whose entries may be of
// different moments.
type State struct {
	Version  int          `json:"version"`
	PID      int          `json:"pid"`
	Command  string       `json:"command"`
	Instance string       `json:"instance"`
	Arenas   []ArenaState `json:"arenas"`
	Blocks   []BlockState `json:"blocks"`
	Leases   []Lease      `json:"leases"`
	Names    []NameState  `json:"names"`
	Bytes    Bytes        `json:"bytes"`
	Waits    int64        `json:"waits,omitempty"` // offers that waited for work of the owner's device
}

// ArenaState describes an arena. Used is the bytes of its blocks, Peers the
// number of connections that have it mapped.
type ArenaState struct {
	ID      string `json:"id"`
	Device  string `json:"device,omitempty"`  // its UUID; empty for the host's memory
	Foreign bool   `json:"foreign,omitempty"` // memory of another allocator, which is shared in place
	Bytes   int    `json:"bytes"`
	Used    int    `json:"used"`
	Blocks  int    `json:"blocks"`
	Peers   int    `json:"peers"`
	Retired bool   `json:"retired"`
}

// BlockState describes a block in use. Its State is "owned", "shared" or
// "limbo". Refs counts leases and tickets.
type BlockState struct {
	Arena  string `json:"arena"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	State  string `json:"state"`
	Refs   int    `json:"refs"`
}

// Lease describes a reference of a peer to a block. Its State is "held",
// "ticket" for a ticket that the peer has requested, or "quarantined" for a
// lease or ticket of a disconnected peer.
type Lease struct {
	PID        int    `json:"pid"`
	Command    string `json:"command"`
	Connection uint64 `json:"connection"`
	Serial     uint64 `json:"serial"`
	Arena      string `json:"arena"`
	Offset     int    `json:"offset"`
	Bytes      int    `json:"bytes"`
	Label      string `json:"label"`
	AgeMS      int64  `json:"age_ms"`
	State      string `json:"state"`
}

// NameState describes a published tensor.
type NameState struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
}

// Bytes are totals of an owner. Limit is 0 if there is none. Arenas includes
// retired arenas that peers still have mapped, except the Pinned ones, which
// only disconnected peers may still have mapped, and memory of other
// allocators. Copied counts the bytes copied
// since the start because tensors were outside the arenas.
type Bytes struct {
	Limit  int64 `json:"limit"`
	Arenas int64 `json:"arenas"`
	Used   int64 `json:"used"`
	Limbo  int64 `json:"limbo"`
	Copied int64 `json:"copied"`
	Pinned int64 `json:"pinned"`
}

// stateVersion is the version of the answer to LIST.
const stateVersion = 1

func idText(id uint64) string { return strconv.FormatUint(id, 16) }

// State returns a snapshot of the owner.
func (o *Owner) State() State {
	if o.none() {
		return State{}
	}
	s := State{Version: stateVersion, PID: os.Getpid(), Command: commandOf(os.Getpid()), Instance: instance().String(),
		Arenas: []ArenaState{}, Blocks: []BlockState{}, Leases: []Lease{}, Names: []NameState{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Waits = o.waits.Load()
	s.Bytes = Bytes{Limit: o.limit, Arenas: o.held, Copied: o.copied.Load(), Pinned: o.pinned}
	for _, a := range o.arenas {
		s.Arenas = append(s.Arenas, o.describe(a, false))
		s.addBlocks(a)
	}
	for _, a := range o.allocations {
		s.Arenas = append(s.Arenas, o.describe(a, false))
		s.addBlocks(a)
	}
	for a := range o.retired {
		s.Arenas = append(s.Arenas, o.describe(a, true))
	}
	s.Leases = o.leases()
	for name, x := range o.names {
		s.Names = append(s.Names, nameState(name, x))
	}
	s.sort()
	return s
}

func (o *Owner) describe(a *arena, retired bool) ArenaState {
	device := ""
	if o.device != nil {
		device = o.device.uuid.String()
	}
	return ArenaState{ID: idText(a.id), Device: device, Foreign: a.alloc != nil, Bytes: a.size, Used: a.used(), Blocks: len(a.blocks), Peers: a.peers, Retired: retired}
}

// used returns the bytes of the blocks.
func (a *arena) used() (bytes int) {
	if a.alloc == nil {
		return a.spans.used
	}
	for _, b := range a.blocks {
		bytes += b.bytes
	}
	return bytes
}

func (s *State) addBlocks(a *arena) {
	for _, b := range a.blocks {
		x := b.describe()
		s.Bytes.add(x)
		s.Blocks = append(s.Blocks, x)
	}
}

func (b *block) describe() BlockState {
	state := "owned"
	if b.shared {
		state = "shared"
	}
	if b.hold != nil && b.hold.Holders() == 1 {
		state = "limbo"
	}
	return BlockState{Arena: idText(b.arena.id), Offset: b.span.at, Bytes: b.bytes, State: state, Refs: b.refs}
}

// add adds a block to the totals.
func (s *Bytes) add(b BlockState) {
	s.Used += int64(b.Bytes)
	if b.State == "limbo" {
		s.Limbo += int64(b.Bytes)
	}
}

func nameState(name string, x *tensor.Tensor) NameState {
	return NameState{Name: name, DType: x.DType().String(), Shape: append([]int{}, x.Shape().Sizes()...), Bytes: x.NumBytes()}
}

// Outstanding lists the leases and tickets of peers, oldest first.
func (o *Owner) Outstanding() []Lease {
	if o.none() {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leases()
}

func (o *Owner) leases() []Lease {
	list := []Lease{}
	now := time.Now()
	for p := range o.peers {
		for _, l := range p.row.leases {
			list = append(list, l.describe(p, now, "held"))
		}
		for _, l := range p.row.tickets {
			list = append(list, l.describe(p, now, "ticket"))
		}
	}
	sortLeases(list)
	return list
}

func sortLeases(list []Lease) {
	slices.SortFunc(list, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Serial, b.Serial))
	})
}

func (l lease) describe(p *Peer, now time.Time, state string) Lease {
	if p.lost {
		state = "quarantined"
	}
	return Lease{PID: p.info.PID, Command: p.info.Command, Connection: p.info.Connection, Serial: l.offer.serial,
		Arena: idText(l.block.arena.id), Offset: l.block.span.at, Bytes: l.block.bytes, Label: l.offer.label, AgeMS: now.Sub(l.since).Milliseconds(), State: state}
}
