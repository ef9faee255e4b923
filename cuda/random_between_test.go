package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// The steps of random programs in which another library or another process
// takes part.

// libraryRead is what a library reads on its stream.
type libraryRead struct{ got, want []uint32 }

// ours returns a stream of a place.
func (p *program) ours(at int) *cuda.Stream {
	if k := p.streamAt(at); k >= 0 && p.r.IntN(3) > 0 {
		return p.streams[k]
	}
	return p.places[at].d.Main()
}

func (p *program) library(at int) *foreign { return p.places[at].libs[p.r.IntN(2)] }

// streamAt returns the number of a stream of a place, -1 if it has none.
func (p *program) streamAt(at int) int {
	if n := len(p.streams); slices.Contains(p.on, at) {
		for k := p.r.IntN(n); ; k = (k + 1) % n {
			if p.on[k] == at {
				return k
			}
		}
	}
	return -1
}

// take imports a tensor of a library, which was told one of several streams.
func (p *program) take(k, _ int) string {
	at := p.on[k]
	lib, d := p.library(at), p.places[at].d
	w, on := p.r.Uint32(), dlpack.NoSync
	opts := []dlpack.ImportOption{dlpack.OnDevice(d.Memory())}
	switch p.r.IntN(4) {
	case 0: // told nothing
	case 1:
		on = dlpack.Stream(lib.stream)
		opts = append(opts, dlpack.ReadyOn(on))
	case 2:
		on = must(dlpack.StreamFor(dlpack.Device{Type: dlpack.CUDA, ID: int32(d.Number())}, opts...))(p.t)
		opts = append(opts, dlpack.ReadyOnCurrent())
	case 3:
		on = dlpack.Stream(p.ours(at).Handle())
		opts = append(opts, dlpack.ReadyOn(on))
	}
	if p.r.IntN(3) == 0 {
		opts = append(opts, dlpack.AssumeExclusive())
	}
	p.note("%d is imported of %d at place %d, on stream %d", len(p.values), w, at, on)
	x := must(dlpack.Import(lib.lend(w, p.n, on), lib.call, opts...))(p.t)
	p.add(x, slices.Repeat([]uint32{w}, p.n), at)
	return ""
}

// lendToRead lets a library read a tensor, which it may go on to do after it
// has ended the export.
func (p *program) lendToRead(_, i int) string {
	v := p.values[i]
	lib := p.library(v.at)
	on := lib.stream
	export := func() (*dlpack.DLManagedTensorVersioned, error) { return dlpack.ExportOn(v.x, dlpack.Stream(on)) }
	if p.r.IntN(3) == 0 {
		on, export = driver.LegacyStream, func() (*dlpack.DLManagedTensorVersioned, error) { return dlpack.Export(v.x) }
	}
	p.note("a library reads %d on stream %#x", i, on)
	m := must(export())(p.t)
	p.out = append(p.out, m)
	p.reads = append(p.reads, libraryRead{lib.read(at(m), p.n, on), slices.Clone(v.want)})
	if p.r.IntN(2) == 0 {
		p.end(len(p.out) - 1)
	}
	return ""
}

// lendToWrite lets a library write a tensor, if it is exclusive.
func (p *program) lendToWrite(_, i int) string {
	v := &p.values[i]
	if !v.x.IsExclusive() {
		return ""
	}
	lib, w := p.library(v.at), p.r.Uint32()
	p.note("a library writes %d into %d", w, i)
	r := dlpack.Request{MaxVersion: &dlpack.Version{Major: 1, Minor: 3}, Writable: true, Stream: new(dlpack.Stream(lib.stream))}
	m := must(r.Export(v.x))(p.t).Versioned
	v.want = slices.Repeat([]uint32{w}, p.n)
	lib.write(at(m), w, p.n, lib.stream)
	m.Delete(nil)
	return ""
}

func (p *program) endExport(_, _ int) string {
	if len(p.out) > 0 {
		p.end(p.r.IntN(len(p.out)))
	}
	return ""
}

func (p *program) end(i int) {
	p.note("end of export %d", i)
	p.out[i].Delete(nil)
	p.out = slices.Delete(p.out, i, i+1)
	memory.Reclaim()
}

// offer shares a value with the consumer's process, in place if it is in the
// owner's arena or, for half of the owners, of a library.
func (p *program) offer(_, i int) string {
	v := p.values[i]
	if p.places[v.at].process == 0 {
		return ""
	}
	p.connect(p.places[v.at])
	pair, to := p.places[v.at].pair, slices.IndexFunc(p.places, func(o *place) bool {
		return o.process == 0 && o.d.Number() == p.places[v.at].d.Number()
	})
	var opts []share.OfferOption
	if p.r.IntN(3) > 0 {
		opts = append(opts, share.BeforeWork())
	}
	p.note("%d is offered, %d options, and becomes %d at place %d", i, len(opts), len(p.values), to)
	must(0, pair.out.Offer(context.Background(), v.x, opts...))(p.t)
	got := must(pair.in.Receive(context.Background()))(p.t)
	if got.Tensor.Device() != p.places[to].d.Memory() {
		return "the tensor was received on " + got.Tensor.Device().String()
	}
	p.add(got.Tensor, slices.Clone(v.want), to)
	if near := p.streamAt(to); near >= 0 && p.r.IntN(3) > 0 { // soon, before the owner's work is complete
		p.copy(near, len(p.values)-1)
	}
	// The owner answers behind what it was told before: that its event is open.
	if _, err := pair.in.Get(context.Background(), "none"); !errors.Is(err, share.ErrNotFound) {
		return fmt.Sprintf("the name of nothing: got %v", err)
	}
	return ""
}

// sumInArena computes a sum into the memory that the consumer's process maps.
func (p *program) sumInArena(k, i int) string {
	v := p.values[i]
	if p.places[v.at].process == 0 {
		return ""
	}
	p.connect(p.places[v.at])
	p.note("in the arena:")
	p.sumInto(k, i, must(tensor.Make(p.places[v.at].pair.owner, v.x.DType(), v.x.Shape()))(p.t))
	return ""
}

// connect makes the owner of a place, and its consumer.
func (p *program) connect(at *place) {
	if at.pair == nil {
		opts := []share.OwnerOption{share.OnDevice(at.d.Memory())}
		if p.r.IntN(2) == 0 {
			opts = append(opts, share.InPlace())
		}
		at.pair = &pair{owner: must(share.NewOwner(opts...))(p.t), consumer: must(share.NewOwner())(p.t)}
		at.pair.attach(p.t)
	}
}
