package share

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"time"
)

// State is what an owner has and who holds it, at one moment. It is what LIST answers, in JSON.
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
}

// ArenaState is an arena. Used is the bytes of its blocks, Peers who have it mapped.
type ArenaState struct {
	ID      string `json:"id"`
	Bytes   int    `json:"bytes"`
	Used    int    `json:"used"`
	Blocks  int    `json:"blocks"`
	Peers   int    `json:"peers"`
	Retired bool   `json:"retired"`
}

// BlockState is a block that is not free: "owned", "shared" or "limbo". Refs counts leases and tickets.
type BlockState struct {
	Arena  string `json:"arena"`
	Offset int    `json:"offset"`
	Bytes  int    `json:"bytes"`
	State  string `json:"state"`
	Refs   int    `json:"refs"`
}

// Lease is what a peer holds: "held", or a "ticket" that it asked for.
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

// NameState is a published tensor.
type NameState struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	Bytes int    `json:"bytes"`
}

// Bytes sums up. Limit is 0 without one, Arenas counts those that are given back and still mapped too, Copied what was copied since the start because it lay outside the arenas.
type Bytes struct {
	Limit  int64 `json:"limit"`
	Arenas int64 `json:"arenas"`
	Used   int64 `json:"used"`
	Limbo  int64 `json:"limbo"`
	Copied int64 `json:"copied"`
}

func idText(id uint64) string { return strconv.FormatUint(id, 16) }

// State describes the owner.
func (o *Owner) State() State {
	s := State{Version: version, PID: os.Getpid(), Command: commandOf(os.Getpid()), Instance: instance().String(),
		Arenas: []ArenaState{}, Blocks: []BlockState{}, Leases: []Lease{}, Names: []NameState{}}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Bytes = Bytes{Limit: o.limit, Arenas: o.held, Copied: o.copied.Load()}
	for _, a := range o.arenas {
		s.addArena(a)
	}
	for a := range o.retired {
		s.Arenas = append(s.Arenas, ArenaState{ID: idText(a.id), Bytes: len(a.data), Peers: a.peers, Retired: true})
	}
	s.Leases = o.leases()
	for name, x := range o.names {
		s.Names = append(s.Names, NameState{Name: name, DType: x.DType().String(), Shape: append([]int{}, x.Shape().Sizes()...), Bytes: x.NumBytes()})
	}
	slices.SortFunc(s.Names, func(a, b NameState) int { return cmp.Compare(a.Name, b.Name) })
	return s
}

func (s *State) addArena(a *arena) {
	s.Arenas = append(s.Arenas, ArenaState{ID: idText(a.id), Bytes: len(a.data), Used: a.spans.used, Blocks: len(a.blocks), Peers: a.peers})
	first := len(s.Blocks)
	for at, b := range a.blocks {
		state := "owned"
		if b.shared {
			state = "shared"
		}
		if b.hold != nil && b.hold.Holders() == 1 {
			state = "limbo"
			s.Bytes.Limbo += int64(b.bytes)
		}
		s.Bytes.Used += int64(b.bytes)
		s.Blocks = append(s.Blocks, BlockState{Arena: idText(a.id), Offset: at, Bytes: b.bytes, State: state, Refs: b.refs})
	}
	slices.SortFunc(s.Blocks[first:], func(a, b BlockState) int { return cmp.Compare(a.Offset, b.Offset) })
}

// Outstanding lists what peers hold, the oldest first.
func (o *Owner) Outstanding() []Lease {
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
	slices.SortFunc(list, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(b.AgeMS, a.AgeMS), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Serial, b.Serial))
	})
	return list
}

func (l lease) describe(p *Peer, now time.Time, state string) Lease {
	return Lease{PID: p.info.PID, Command: p.info.Command, Connection: p.info.Connection, Serial: l.offer.serial,
		Arena: idText(l.block.arena.id), Offset: l.block.span.at, Bytes: l.block.bytes, Label: l.offer.label, AgeMS: now.Sub(l.since).Milliseconds(), State: state}
}
