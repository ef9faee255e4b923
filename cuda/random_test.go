package cuda_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

var (
	programs  = flag.Int("programs", 300, "random programs on streams")
	firstSeed = flag.Uint64("seed", 1, "seed of the first one")
)

// value is a tensor of a random program and its elements.
type value struct {
	x    *tensor.Tensor
	want []uint32
	at   int // place
}

// place is a device as a process has it.
type place struct {
	d         *cuda.Device
	process   int // 0 receives what 1 offers
	module    *cuda.Module
	sum, bump *cuda.Function
	libs      [2]*foreign // other libraries of the process
	pair      *pair       // an owner on the device and a consumer; nil before the first offer
}

// program is a random program under way. Its tensors have one shape, so that
// bytes are reused soon.
type program struct {
	t        testing.TB
	r        *rand.Rand
	machines []*fake.Machine // of each process
	places   []*place
	streams  []*cuda.Stream
	on       []int // place of each stream
	steps    []func(k, i int) string
	values   []value
	out      []*dlpack.DLManagedTensorVersioned // exports that have not ended
	reads    []libraryRead
	n        int
	log      []string
}

// newProgram opens the devices and streams of the program of a seed: of one
// process, or of two that share. For the driver every machine is a process of
// its own, so both can be in this one.
func newProgram(t testing.TB, seed uint64, w *counted) *program {
	r := rand.New(rand.NewPCG(seed, 77))
	p := &program{t: t, r: r, n: 1 + r.IntN(40)}
	cfg := fake.Config{Devices: 1 + r.IntN(2), Seed: seed, NoRaces: true, Granularity: 4096, ReuseAddresses: r.IntN(4) == 0}
	if r.IntN(4) == 0 {
		cfg.Mode = fake.Lazy
	}
	if r.IntN(5) == 0 {
		cfg.Version = 12020 // without the event of a context
	}
	p.steps = []func(k, i int) string{p.copy, p.clear, p.clearCopy, p.sum, p.sum, p.bump, p.release, p.move, p.check}
	exchanges, processes := r.IntN(2) == 0, 1
	if exchanges {
		p.steps = append(p.steps, p.take, p.take, p.lendToRead, p.lendToRead, p.lendToWrite, p.endExport)
	}
	if r.IntN(2) == 0 && runtime.GOOS == "linux" {
		processes = 2
		p.steps = append(p.steps, slices.Repeat([]func(k, i int) string{p.offer, p.offer, p.sumInArena}, len(p.steps)/3)...)
	}
	// The consumer's devices come first: a peer looks for the device of an
	// offer among those that are open, and finds the first.
	for i := range processes {
		cfg.Seed += uint64(i) << 32
		p.open(i, cfg, w)
	}
	for i := range p.places {
		if processes == 2 || r.IntN(2) == 0 {
			p.stream(i)
		}
	}
	for len(p.streams) < processes || len(p.streams) < 4 && r.IntN(3) > 0 {
		p.stream(r.IntN(len(p.places)))
	}
	return p
}

// open opens the devices of a process.
func (p *program) open(process int, cfg fake.Config, w *counted) {
	m := fake.New(cfg)
	p.machines = append(p.machines, m)
	drv := &skipping{Driver: m, counted: w}
	c := must(cuda.New(drv))(p.t)
	for i := range c.Len() {
		d := must(c.Device(i))(p.t)
		mod := must(d.Compile(drivertest.PTX))(p.t)
		p.places = append(p.places, &place{
			d: d, process: process, module: mod, sum: must(mod.Function("sum"))(p.t), bump: must(mod.Function("bump"))(p.t),
			libs: [2]*foreign{newForeign(p.t, m, drv, i), newForeign(p.t, m, drv, i)},
		})
	}
}

func (p *program) stream(at int) {
	p.on = append(p.on, at)
	p.streams = append(p.streams, must(p.places[at].d.NewStream())(p.t))
}

// runProgram runs the program of a seed and returns the first result that is
// wrong, "" if there is none.
func runProgram(t testing.TB, seed uint64, w *counted) (fault string) {
	p := newProgram(t, seed, w)
	for range 5 + p.r.IntN(40) {
		if fault = p.step(); fault != "" {
			break
		}
	}
	for len(p.values) > 0 {
		if f := p.check(0, 0); fault == "" {
			fault = f
		}
		p.release(0, 0)
	}
	if f := p.close(); fault == "" {
		fault = f
	}
	if fault != "" {
		fault += "\n" + strings.Join(p.log, "\n")
	}
	return fault
}

// close ends everything, and returns what is wrong at the end.
func (p *program) close() (fault string) {
	for len(p.out) > 0 {
		p.endExport(0, 0)
	}
	for _, at := range p.places {
		for _, lib := range at.libs {
			lib.sync()
		}
		if at.pair != nil {
			at.pair.close(p.t)
		}
	}
	for _, read := range p.reads {
		if !slices.Equal(read.got, read.want) && fault == "" {
			fault = fmt.Sprintf("a library has read %v, want %v", read.got, read.want)
		}
	}
	for _, s := range p.streams {
		must(0, s.Close())(p.t)
	}
	for _, at := range p.places {
		must(0, at.module.Close())(p.t)
		closeSoon(p.t, at.d)
		for _, lib := range at.libs {
			lib.end()
		}
	}
	for _, m := range p.machines {
		if reports := m.Reports(); len(reports) > 0 && fault == "" {
			fault = fmt.Sprint(reports)
		}
		if live := m.Live(); len(live) > 0 && fault == "" {
			fault = "left behind: " + strings.Join(live, "; ")
		}
	}
	return fault
}

func (p *program) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// pick returns the number of a value at a place, -1 if there is none.
func (p *program) pick(at int) int {
	var there []int
	for i, v := range p.values {
		if v.at == at {
			there = append(there, i)
		}
	}
	if len(there) == 0 {
		return -1
	}
	return there[p.r.IntN(len(there))]
}

func (p *program) add(x *tensor.Tensor, want []uint32, at int) {
	p.values = append(p.values, value{x, want, at})
}

// step does one thing at random, on a stream k with a value i of its device.
func (p *program) step() string {
	k := p.r.IntN(len(p.streams))
	i := p.pick(p.on[k])
	if i < 0 || p.r.IntN(5) == 0 {
		p.upload(p.r.IntN(len(p.places)))
		return ""
	}
	return p.steps[p.r.IntN(len(p.steps))](k, i)
}

func (p *program) copy(k, i int) string {
	p.note("s%d: copy %d", k, i)
	v := p.values[i]
	p.add(must(p.streams[k].Copy(v.x))(p.t), slices.Clone(v.want), v.at)
	return ""
}

// clear writes zeros into the bytes of a value that is not shared.
func (p *program) clear(k, i int) string {
	v := p.values[i]
	if !v.x.IsExclusive() {
		return ""
	}
	p.note("s%d: clear %d, donated", k, i)
	p.values[i] = value{must(p.streams[k].Fill(v.x.Donate(), uint32(0)))(p.t), make([]uint32, p.n), v.at}
	return ""
}

func (p *program) clearCopy(k, i int) string {
	p.note("s%d: clear a copy of %d", k, i)
	v := p.values[i]
	p.add(must(p.streams[k].Fill(v.x, uint32(0)))(p.t), make([]uint32, p.n), v.at)
	return ""
}

func (p *program) sum(k, i int) string {
	s, x := p.streams[k], p.values[i].x
	p.sumInto(k, i, must(s.Make(x.DType(), x.Shape()))(p.t))
	return ""
}

// sumInto computes value i plus another one into z.
func (p *program) sumInto(k, i int, z *tensor.Tensor) {
	j := p.pick(p.on[k])
	p.note("s%d: %d + %d", k, i, j)
	a, b := p.values[i], p.values[j]
	want := make([]uint32, p.n)
	for e := range want {
		want[e] = a.want[e] + b.want[e]
	}
	p.launch(k, p.places[a.at].sum, cuda.In(a.x), cuda.In(b.x), cuda.Out(z), cuda.Value(uint32(p.n)))
	p.add(z, want, a.at)
}

func (p *program) launch(k int, f *cuda.Function, args ...cuda.Arg) {
	must(0, p.streams[k].Launch(f, cuda.Dim{X: (p.n + 15) / 16}, cuda.Dim{X: 16}, 0, args...))(p.t)
}

func (p *program) bump(k, i int) string {
	v := p.values[i]
	if !v.x.IsExclusive() {
		return ""
	}
	by := p.r.Uint32N(1000)
	p.note("s%d: %d += %d", k, i, by)
	p.launch(k, p.places[v.at].bump, cuda.Out(v.x), cuda.Value(by), cuda.Value(uint32(p.n)))
	for e := range v.want {
		v.want[e] += by
	}
	return ""
}

func (p *program) release(_, i int) string {
	p.note("release %d", i)
	must(0, p.values[i].x.Release())(p.t)
	p.values = slices.Delete(p.values, i, i+1)
	return ""
}

// move moves a value to a device of the same process.
func (p *program) move(_, i int) string {
	v := p.values[i]
	to := p.r.IntN(len(p.places))
	if p.places[to].process != p.places[v.at].process {
		to = v.at
	}
	p.note("%d to place %d", i, to)
	moved := must(tensor.To(context.Background(), v.x.Reuse(), p.places[to].d.Memory()))(p.t)
	p.values[i] = value{moved, v.want, to}
	return ""
}

func (p *program) upload(at int) {
	data := make([]uint32, p.n)
	for e := range data {
		data[e] = p.r.Uint32()
	}
	p.note("%d to place %d from the host", len(p.values), at)
	x := must(tensor.Of(data, p.n))(p.t)
	p.add(must(tensor.To(context.Background(), x.Reuse(), p.places[at].d.Memory()))(p.t), data, at)
}

// check downloads a value.
func (p *program) check(_, i int) string {
	v := p.values[i]
	p.note("check %d", i)
	if got := numbers(p.t, v.x); !slices.Equal(got, v.want) {
		return fmt.Sprintf("value %d: got %v, want %v", i, got, v.want)
	}
	return ""
}

// Every read sees what the order of the calls promises, on whatever streams,
// devices and processes they were, and whichever library made or read the
// tensor.
func TestRandomPrograms(t *testing.T) {
	before := memory.Stats().Handles
	for seed := *firstSeed; seed < *firstSeed+uint64(*programs); seed++ {
		if fault := runProgram(t, seed, &counted{}); fault != "" || t.Failed() {
			t.Fatalf("-programs 1 -seed %d: %s", seed, fault)
		}
	}
	held = nil
	if now := memory.Stats().Handles; now != before {
		t.Errorf("got %d handles, want the %d of before", now, before)
	}
}

// A program that forgets one wait is found, of whatever kind it is: not each
// one, because a wait for work that happens to be complete changes nothing.
func TestForgottenWaitIsFound(t *testing.T) {
	for kind := range anyStream {
		t.Run(kind.String(), func(t *testing.T) {
			if kind == ofProcess {
				needsLinux(t)
			}
			const enough, most = 5, 1000
			found, tried := 0, 0
			for seed := uint64(1); seed <= most && found < enough; seed++ {
				var all counted
				runProgram(t, seed, &all)
				for skip := int64(1); skip <= min(all.made[kind].Load(), 6) && found < enough; skip++ {
					tried++
					if fault := runProgram(t, seed, &counted{kind: kind, skip: skip}); fault != "" {
						found++
					}
				}
			}
			t.Logf("found %d of %d", found, tried)
			if found < enough {
				t.Errorf("found %d of %d forgotten waits in %d programs, want %d", found, tried, most, enough)
			}
		})
	}
}

// A lease that does not keep its bytes is found.
func TestForgottenLeaseIsFound(t *testing.T) {
	needsLinux(t)
	if !invariant.Enabled {
		t.Skip("only builds with the tag invariants can break the protocol")
	}
	t.Setenv("TENURE_MUTATION", "early reuse")
	for seed := uint64(1); seed <= 200; seed++ {
		if runProgram(t, seed, &counted{}) != "" {
			return
		}
	}
	t.Error("200 programs without leases were right")
}
