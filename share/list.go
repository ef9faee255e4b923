package share

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"
)

// listing is an answer to LIST that is being written. The owner's table is told page by page: the owner is free between two of
// them, and no more of the text exists than one page, however much there is to list and however slowly it is read.
type listing struct {
	p       *Peer
	request uint32
	text    []byte
	entries int // of the list that is being written
	over    bool
}

// pageBytes is from where on a page goes; one more entry always fits into its packet.
const pageBytes = maxText - 4096

// list answers LIST.
func (p *Peer) list(request uint32) {
	l := &listing{p: p, request: request, text: make([]byte, 0, maxText)}
	l.write(`{"version":%d,"pid":%d,"command":%s,"instance":%q,`, version, os.Getpid(), quoted(commandOf(os.Getpid())), instance())
	o := p.o
	o.mu.Lock()
	bytes := Bytes{Limit: o.limit, Arenas: o.held, Copied: o.copied.Load(), Pinned: o.pinned}
	living := slices.Clone(o.arenas)
	l.begin("arenas")
	for _, a := range living {
		l.entry(a.describe(false))
	}
	for a := range o.retired {
		l.entry(a.describe(true))
	}
	l.end()
	l.begin("blocks")
	for _, a := range living {
		for at, b := range a.blocks {
			s := b.describe(at)
			bytes.add(s)
			l.entry(s)
		}
	}
	l.end()
	l.leases(o)
	l.begin("names")
	for name, x := range o.names {
		l.entry(nameState(name, x))
	}
	l.end()
	o.mu.Unlock()
	l.write(`"bytes":`)
	l.add(bytes)
	l.write("}")
	l.send(0)
}

func (l *listing) leases(o *Owner) {
	l.begin("leases")
	now := time.Now()
	for p := range o.peers {
		for _, x := range p.row.leases {
			l.entry(x.describe(p, now, "held"))
		}
		for _, x := range p.row.tickets {
			l.entry(x.describe(p, now, "ticket"))
		}
	}
	l.end()
}

func quoted(text string) []byte {
	b, _ := json.Marshal(text) // a text always can be
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

func (l *listing) begin(name string) {
	l.write("%q:[", name)
	l.entries = 0
}

func (l *listing) end() { l.write("],") }

// entry adds one to the list. The caller has o.mu, which is free meanwhile if the page is full. Whoever ranges over a map goes
// on in it: what was added or taken out since is listed or not.
func (l *listing) entry(v any) {
	if l.over {
		return
	}
	if l.entries++; l.entries > 1 {
		l.text = append(l.text, ',')
	}
	l.add(v)
	if len(l.text) >= pageBytes {
		l.p.o.mu.Unlock()
		l.send(1)
		l.p.o.mu.Lock()
	}
}

// send sends what there is once the peer has read what was sent before. more is 1 if another part follows.
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

// State asks the peer for its arenas, blocks, leases and names. A peer at work goes on while it answers, so that each
// entry is of its own moment.
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

// sort puts the lists in the order of [Owner.State].
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
