package share

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/invariant"
)

// An allocation of the peer's process is open here once, whatever number of
// connections and announcements name it. Its owner must know when it is closed,
// so an end says UNMAPPED for each before it shuts its side down, and opens
// none after END.

// openAllocation opens an allocation that was announced.
func (p *Peer) openAllocation(note arenaNote) (*mappedFile, error) {
	p.mu.Lock()
	p.busy++
	over := p.sentEnd
	p.mu.Unlock()
	if over {
		return nil, fmt.Errorf("the connection is %w", ErrClosed)
	}
	d, err := deviceOf(note.uuid)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.device = d
	p.mu.Unlock()
	id := fileID{process: p.account.id, instance: p.info.Instance, handle: note.handle}
	return processBudget().mapWith(p.account, id, note.size, func() (*mappedFile, error) {
		var region View
		var err error
		own, _ := allocationsHere.Load(note.id)
		if a, is := own.(ownAllocation); is && p.isHere() && a.device == d {
			region, err = d.OwnAllocation(a.address)
		} else {
			region, err = d.OpenAllocation(note.handle, note.size)
		}
		if err != nil {
			return nil, err
		}
		return &mappedFile{region: region}, nil
	})
}

// openedAllocation ends what openAllocation began: the view is in the table, or
// there is none.
func (p *Peer) openedAllocation() {
	p.mu.Lock()
	p.busy--
	ending := p.sentEnd
	p.mu.Unlock()
	if ending {
		go p.settle()
	}
}

// living returns what reports whether the peer's process exists, which has the
// memory; nil for this process.
func (p *Peer) living() func() bool {
	if p.isHere() {
		return nil
	}
	return func() bool { return !p.s.hungUp() }
}

// idleAllocations takes the allocations that are open for this connection,
// which holds nothing and takes nothing any more. The views stay, for offers
// that are under way. The caller has p.mu.
func (p *Peer) idleAllocations() (list []ending) {
	for id, v := range p.views {
		if v.lent && !v.gone {
			v.gone = true
			list = append(list, ending{id, v.file})
		}
	}
	return list
}

// ending is a view that is about to end.
type ending struct {
	id   uint64
	file *mappedFile
}

// unmap ends views and says so.
func (p *Peer) unmap(list []ending) {
	for _, g := range list {
		crashAt(30)
		if err := processBudget().unmapFile(p.account, g.file); err != nil {
			invariant.Failf("share: %v", err)
		}
		crashAt(31)
		p.reply(header{kind: kindUnmapped}, func(b []byte) []byte { return le.AppendUint64(b, g.id) })
	}
}
