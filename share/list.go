package share

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"
)

// listing is an answer to LIST in progress. It reads a few entries of the
// owner's table at a time and releases the lock in between, and has at most one
// packet of text in memory, however long the list is and however slowly it is
// read. One answer is written at a time, and one answer of each peer process
// waits for that. Each is followed by a rest of three times its length, so that
// answers take at most a quarter of a processor from hand-overs.
type listing struct {
	p       *Peer
	request uint32
	read    []any // entries that are not in text yet
	text    []byte
	entries int // number of entries in the present list
	spent   time.Duration
	over    bool
}

const (
	readEntries = 64
	pageBytes   = maxText - 4096 // a longer text is sent, so that another entry always has room
)

// list answers LIST.
func (p *Peer) list(request uint32) {
	o := p.o
	l := &listing{p: p, request: request, text: make([]byte, 0, maxText), read: make([]any, 0, readEntries)}
	l.write(`{"version":%d,"pid":%d,"command":%s,"instance":%q,`, stateVersion, os.Getpid(), quoted(commandOf(os.Getpid())), instance())
	l.begins()
	o.mu.Lock()
	bytes := Bytes{Limit: o.limit, Arenas: o.held, Copied: o.copied.Load(), Pinned: o.pinned}
	living := append(slices.Clone(o.arenas), slices.Collect(maps.Values(o.allocations))...)
	l.begin("arenas")
	for _, a := range living {
		l.entry(o.describe(a, false))
	}
	for a := range o.retired {
		l.entry(o.describe(a, true))
	}
	l.begin("blocks")
	for _, a := range living {
		for _, b := range a.blocks {
			s := b.describe()
			bytes.add(s)
			l.entry(s)
		}
	}
	l.begin("leases")
	l.leases(o)
	l.begin("names")
	for name, x := range o.names {
		l.entry(nameState(name, x))
	}
	l.end()
	o.mu.Unlock()
	l.rest()
	l.write(`,"bytes":`)
	l.add(bytes)
	if n := o.waits.Load(); n > 0 {
		l.write(`,"waits":%d`, n)
	}
	l.write("}")
	l.send(0)
}

func (l *listing) leases(o *Owner) {
	now := time.Now()
	for p := range o.peers {
		for _, x := range p.row.leases {
			l.entry(x.describe(p, now, "held"))
		}
		for _, x := range p.row.tickets {
			l.entry(x.describe(p, now, "ticket"))
		}
	}
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // marshalling a string never fails
	return b
}

func (l *listing) write(format string, args ...any) { l.text = fmt.Appendf(l.text, format, args...) }

func (l *listing) add(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: share: what is listed cannot be written: " + err.Error())
	}
	l.text = append(l.text, b...)
}

// begin ends the previous list, if there is one, and begins the next. The
// caller has o.mu; so do those of entry and end.
func (l *listing) begin(name string) {
	if name != "arenas" {
		l.end()
		l.write(",")
	}
	l.write("%q:[", name)
	l.entries = 0
}

func (l *listing) end() {
	l.flush()
	l.write("]")
}

// entry adds an entry to the list. The caller may range over a map: entries
// added or removed meanwhile may or may not be listed.
func (l *listing) entry(v any) {
	if l.over {
		return
	}
	if l.read = append(l.read, v); len(l.read) == readEntries {
		l.flush()
	}
}

// flush writes the entries that were read, without the table's lock, and sends
// a full packet, without the lock of the answers.
func (l *listing) flush() {
	l.p.o.mu.Unlock()
	begin := time.Now()
	for _, v := range l.read {
		if l.entries++; l.entries > 1 {
			l.text = append(l.text, ',')
		}
		l.add(v)
		if len(l.text) >= pageBytes {
			l.spent += time.Since(begin)
			l.rest()
			l.send(1)
			l.begins()
			begin = time.Now()
		}
	}
	l.spent += time.Since(begin)
	l.read = l.read[:0]
	l.p.o.mu.Lock()
}

// begins waits until the answer may be written. rest lets the next answer
// start, after three times the duration of this one.
func (l *listing) begins() {
	l.p.debtor.lists.Lock()
	l.p.o.lists.Lock()
}

func (l *listing) rest() {
	time.Sleep(3 * l.spent)
	l.spent = 0
	l.p.o.lists.Unlock()
	l.p.debtor.lists.Unlock()
}

// send sends the text once the peer has read everything that was sent before.
// more is 1 if another part follows.
func (l *listing) send(more int) {
	if l.over {
		return
	}
	if err := l.p.whenRead(l.p.ctx, true); err != nil {
		l.over = true
		l.p.noBecause(l.request, err)
	} else {
		l.p.reply(header{kind: kindText, count: more, request: l.request}, func(b []byte) []byte { return append(b, l.text...) })
	}
	l.text = l.text[:0]
}

// State requests the peer's arenas, blocks, leases and names. The peer
// continues to work while it answers, so entries may be of different moments.
func (p *Peer) State(ctx context.Context) (*State, error) {
	r, err := p.question(ctx, kindList, nil)
	if err != nil {
		return nil, fmt.Errorf("share state: %w", err)
	}
	s := new(State)
	if err := json.Unmarshal(r.text, s); err != nil {
		return nil, fmt.Errorf("share state: %w: %w", ErrPeer, err)
	}
	s.sort()
	return s, nil
}

// sort sorts the lists in the order of [Owner.State].
func (s *State) sort() {
	place := map[string]int{}
	for i, a := range s.Arenas {
		place[a.ID] = i
	}
	slices.SortFunc(s.Blocks, func(a, b BlockState) int {
		return cmp.Or(cmp.Compare(place[a.Arena], place[b.Arena]), cmp.Compare(a.Offset, b.Offset))
	})
	sortLeases(s.Leases)
	slices.SortFunc(s.Names, func(a, b NameState) int { return cmp.Compare(a.Name, b.Name) })
}
