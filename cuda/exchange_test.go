package cuda_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// exchanging is a random program of this package and two foreign libraries on
// one device. Every tensor has one number in all its elements.
type exchanging struct {
	*exchange
	r      *rand.Rand
	libs   []*foreign
	values []shared
	out    []*dlpack.DLManagedTensorVersioned // exports whose consumer has not ended them
	reads  []pendingRead
	log    []string
	last   uint32
}

type shared struct {
	x    *tensor.Tensor
	want uint32
}

type pendingRead struct {
	got  []uint32
	want uint32
}

func (p *exchanging) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

func (p *exchanging) fresh() uint32 { p.last++; return p.last }

func (p *exchanging) ours() *cuda.Stream {
	return []*cuda.Stream{p.a, p.b, p.d.Main()}[p.r.IntN(3)]
}

func runExchanges(t testing.TB, seed uint64, skip int64) (fault string, waits int64) {
	r := rand.New(rand.NewPCG(seed, 20))
	cfg := fake.Config{Mode: fake.Random, Seed: seed, ReuseAddresses: r.IntN(2) == 0}
	if r.IntN(4) == 0 {
		cfg.Mode = fake.Lazy
	}
	if r.IntN(4) == 0 {
		cfg.Version = 12020 // without the event of a context
	}
	return withForeign(t, cfg, skip, func(x *exchange) string {
		x.other = newForeign(t, x.m, x.f.d, 0)
		p := &exchanging{exchange: x, r: r, libs: []*foreign{x.f, x.other}}
		fault := ""
		for range 5 + r.IntN(30) {
			if fault = p.step(); fault != "" {
				break
			}
		}
		for len(p.values) > 0 {
			p.release(0)
		}
		for len(p.out) > 0 {
			p.delete(0)
		}
		for _, l := range p.libs {
			l.sync()
		}
		for _, read := range p.reads {
			if fault == "" {
				fault = wantNumbers(read.got, read.want)
			}
		}
		if fault != "" {
			fault += "\n" + strings.Join(p.log, "\n")
		}
		return fault
	})
}

func (p *exchanging) release(i int) {
	p.note("release %d", i)
	must(0, p.values[i].x.Release())(p.t)
	p.values = slices.Delete(p.values, i, i+1)
}

func (p *exchanging) delete(i int) {
	p.note("end of export %d", i)
	p.out[i].Delete(nil)
	p.out = slices.Delete(p.out, i, i+1)
	memory.Reclaim()
}

// step does one thing at random.
func (p *exchanging) step() string {
	s, f := p.ours(), p.libs[p.r.IntN(2)]
	if len(p.values) == 0 || p.r.IntN(6) == 0 {
		p.take(f)
		return ""
	}
	i := p.r.IntN(len(p.values))
	v := &p.values[i]
	switch p.r.IntN(9) {
	case 0:
		w := p.fresh()
		p.note("a tensor of %d", w)
		p.values = append(p.values, shared{p.filled(s, w), w})
	case 1:
		p.note("stream %#x copies %d", s.Handle(), i)
		p.values = append(p.values, shared{must(s.Copy(v.x))(p.t), v.want})
	case 2:
		p.note("stream %#x clears %d", s.Handle(), i)
		*v = shared{must(s.Fill(v.x.Reuse(), uint32(0)))(p.t), 0}
	case 3, 4:
		p.lendToRead(f, i)
	case 5:
		p.lendToWrite(f, i)
	case 6:
		if len(p.out) > 0 {
			p.delete(p.r.IntN(len(p.out)))
		}
	case 7:
		p.release(i)
	case 8:
		p.note("check %d", i)
		return wantNumbers(numbers(p.t, v.x), v.want)
	}
	return ""
}

// take imports a tensor of a library, which was told one of several streams.
func (p *exchanging) take(f *foreign) {
	w, on := p.fresh(), dlpack.NoSync
	var opts []dlpack.ImportOption
	switch p.r.IntN(4) {
	case 0: // told nothing
	case 1:
		on = dlpack.Stream(f.stream)
		opts = append(opts, dlpack.ReadyOn(on))
	case 2:
		on = must(dlpack.StreamFor(dlpack.Device{Type: dlpack.CUDA}))(p.t)
		opts = append(opts, dlpack.ReadyOnCurrent())
	case 3:
		on = dlpack.Stream(p.ours().Handle())
		opts = append(opts, dlpack.ReadyOn(on))
	}
	if p.r.IntN(3) == 0 {
		opts = append(opts, dlpack.AssumeExclusive())
	}
	p.note("import of %d, on stream %d", w, on)
	x := must(dlpack.Import(f.lend(w, exchanged, on), f.call, opts...))(p.t)
	p.values = append(p.values, shared{x, w})
}

// lendToRead lets a library read a tensor, which it may go on to do after it
// has ended the export.
func (p *exchanging) lendToRead(f *foreign, i int) {
	v := p.values[i]
	on := f.stream
	export := func() (*dlpack.DLManagedTensorVersioned, error) { return dlpack.ExportOn(v.x, dlpack.Stream(on)) }
	if p.r.IntN(3) == 0 {
		on, export = driver.LegacyStream, func() (*dlpack.DLManagedTensorVersioned, error) { return dlpack.Export(v.x) }
	}
	p.note("a library reads %d on stream %#x", i, on)
	m := must(export())(p.t)
	p.out = append(p.out, m)
	p.reads = append(p.reads, pendingRead{f.read(at(m), exchanged, on), v.want})
	if p.r.IntN(2) == 0 {
		p.delete(len(p.out) - 1)
	}
}

// lendToWrite lets a library write a tensor, if it is exclusive.
func (p *exchanging) lendToWrite(f *foreign, i int) {
	v := &p.values[i]
	if !v.x.IsExclusive() {
		return
	}
	v.want = p.fresh()
	p.note("a library writes %d into %d", v.want, i)
	r := dlpack.Request{MaxVersion: &dlpack.Version{Major: 1, Minor: 3}, Writable: true, Stream: new(dlpack.Stream(f.stream))}
	m := must(r.Export(v.x))(p.t).Versioned
	f.write(at(m), v.want, exchanged, f.stream)
	m.Delete(nil)
}

// TestRandomExchanges: everybody sees what the order of the calls promises,
// whichever library and stream wrote it.
func TestRandomExchanges(t *testing.T) {
	memorytest.Check(t)
	for seed := *firstSeed; seed < *firstSeed+uint64(*programs); seed++ {
		if fault, _ := runExchanges(t, seed, 0); fault != "" || t.Failed() {
			t.Fatalf("-programs 1 -seed %d: %s", seed, fault)
		}
	}
	held = nil
}

// TestForgottenExchange: of the waits that order the work of two libraries,
// enough are noticed when they are missing.
func TestForgottenExchange(t *testing.T) {
	memorytest.Check(t)
	found, tried := 0, 0
	for seed := uint64(1); seed <= 30; seed++ {
		_, waits := runExchanges(t, seed, 0)
		for skip := int64(1); skip <= min(waits, 8); skip++ {
			tried++
			if fault, _ := runExchanges(t, seed, skip); fault != "" {
				found++
			}
		}
	}
	t.Logf("found %d of %d", found, tried)
	if found < tried/10 || tried < 50 {
		t.Errorf("found %d of %d forgotten waits, want at least a tenth of 50 or more", found, tried)
	}
}
