package cuda_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

var (
	programs  = flag.Int("programs", 300, "random programs on streams")
	firstSeed = flag.Uint64("seed", 1, "seed of the first one")
)

// testKernels is PTX text: sum computes c = a + b, and bump a = a + v.
const testKernels = `
.version 7.0
.target sm_70
.address_size 64

.visible .entry sum(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %x, %y, %t;
	.reg .u64 %a, %b, %c, %o;
	ld.param.u64 %a, [a];
	ld.param.u64 %b, [b];
	ld.param.u64 %c, [c];
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p ret;
	mul.wide.u32 %o, %i, 4;
	add.u64 %a, %a, %o;
	add.u64 %b, %b, %o;
	add.u64 %c, %c, %o;
	ld.global.u32 %x, [%a];
	ld.global.u32 %y, [%b];
	add.u32 %x, %x, %y;
	st.global.u32 [%c], %x;
	ret;
}

.visible .entry bump(.param .u64 a, .param .u32 v, .param .u32 n)
{
	.reg .pred %p;
	.reg .u32 %i, %n, %x, %v, %t;
	.reg .u64 %a, %o;
	ld.param.u64 %a, [a];
	ld.param.u32 %v, [v];
	ld.param.u32 %n, [n];
	mov.u32 %t, %ctaid.x;
	mov.u32 %i, %ntid.x;
	mul.lo.u32 %t, %t, %i;
	mov.u32 %i, %tid.x;
	add.u32 %i, %i, %t;
	setp.ge.u32 %p, %i, %n;
	@%p ret;
	mul.wide.u32 %o, %i, 4;
	add.u64 %a, %a, %o;
	ld.global.u32 %x, [%a];
	add.u32 %x, %x, %v;
	st.global.u32 [%a], %x;
	ret;
}
`

// skipping is a driver that forgets one wait of a stream for an event.
type skipping struct {
	driver.Driver
	skip  int64
	waits atomic.Int64
}

func (s *skipping) StreamWaitEvent(ctx driver.Context, st driver.Stream, e driver.Event) error {
	if s.waits.Add(1) == s.skip {
		return nil
	}
	return s.Driver.StreamWaitEvent(ctx, st, e)
}

// value is a tensor of a random program and its elements.
type value struct {
	x    *tensor.Tensor
	want []uint32
	at   int // device
}

// program is a random program under way. Its tensors have one shape, so that
// bytes are reused soon.
type program struct {
	r       *rand.Rand
	devices []*cuda.Device
	streams []*cuda.Stream
	on      []int // device of each stream
	sums    []*cuda.Function
	bumps   []*cuda.Function
	values  []value
	n       int
	log     []string
}

// runProgram runs the program of a seed on a machine, and returns the first
// result that is wrong, "" if there is none. With skip it forgets that wait.
func runProgram(t testing.TB, seed uint64, skip int64) (fault string, waits int64) {
	r := rand.New(rand.NewPCG(seed, 77))
	cfg := fake.Config{Devices: 1 + r.IntN(2), Mode: fake.Random, Seed: seed, NoRaces: true, Granularity: 4096}
	if r.IntN(4) == 0 {
		cfg.Mode = fake.Lazy
	}
	if r.IntN(5) == 0 {
		cfg.Version = 12020 // without the event of a context
	}
	m := fake.New(cfg)
	d := &skipping{Driver: m, skip: skip}
	c := must(cuda.New(d))(t)
	p := &program{r: r, n: 1 + r.IntN(40)}
	var modules []*cuda.Module
	for i := range c.Len() {
		dev := must(c.Device(i))(t)
		p.devices = append(p.devices, dev)
		mod := must(dev.Compile(testKernels))(t)
		modules = append(modules, mod)
		p.sums = append(p.sums, must(mod.Function("sum"))(t))
		p.bumps = append(p.bumps, must(mod.Function("bump"))(t))
	}
	for range 1 + r.IntN(4) {
		i := r.IntN(len(p.devices))
		p.on = append(p.on, i)
		p.streams = append(p.streams, must(p.devices[i].NewStream())(t))
	}
	for range 5 + r.IntN(40) {
		if fault = p.step(t); fault != "" {
			break
		}
	}
	for len(p.values) > 0 {
		if f := p.check(t, 0); fault == "" {
			fault = f
		}
		p.values[0].x.Release()
		p.values = p.values[1:]
	}
	for _, s := range p.streams {
		must(0, s.Close())(t)
	}
	for i, dev := range p.devices {
		must(0, modules[i].Close())(t)
		must(0, dev.Close())(t)
	}
	if reports := m.Reports(); len(reports) > 0 && fault == "" {
		fault = fmt.Sprint(reports)
	}
	if fault != "" {
		fault += "\n" + strings.Join(p.log, "\n")
	}
	return fault, d.waits.Load()
}

func (p *program) note(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// pick returns the number of a value on a device, -1 if there is none.
func (p *program) pick(device int) int {
	var on []int
	for i, v := range p.values {
		if v.at == device {
			on = append(on, i)
		}
	}
	if len(on) == 0 {
		return -1
	}
	return on[p.r.IntN(len(on))]
}

func (p *program) add(x *tensor.Tensor, want []uint32, at int) {
	p.values = append(p.values, value{x, want, at})
}

func (p *program) drop(i int) { p.values = slices.Delete(p.values, i, i+1) }

// step does one thing at random.
func (p *program) step(t testing.TB) string {
	k := p.r.IntN(len(p.streams))
	s, at := p.streams[k], p.on[k]
	i := p.pick(at)
	if i < 0 || p.r.IntN(5) == 0 {
		p.upload(t, p.r.IntN(len(p.devices)))
		return ""
	}
	v := p.values[i]
	switch p.r.IntN(9) {
	case 0:
		p.note("s%d: copy %d", k, i)
		p.add(must(s.Copy(v.x))(t), slices.Clone(v.want), at)
	case 1:
		p.note("s%d: clear %d, donated", k, i)
		p.values[i] = value{must(s.Fill(v.x.Donate(), uint32(0)))(t), make([]uint32, p.n), at}
	case 2:
		p.note("s%d: clear a copy of %d", k, i)
		p.add(must(s.Fill(v.x, uint32(0)))(t), make([]uint32, p.n), at)
	case 3, 4:
		j := p.pick(at)
		p.note("s%d: %d + %d", k, i, j)
		z := must(s.Make(v.x.DType(), v.x.Shape()))(t)
		want := make([]uint32, p.n)
		for e := range want {
			want[e] = v.want[e] + p.values[j].want[e]
		}
		grid := cuda.Dim{X: (p.n + 15) / 16}
		must(0, s.Launch(p.sums[at], grid, cuda.Dim{X: 16}, 0, cuda.In(v.x), cuda.In(p.values[j].x), cuda.Out(z), cuda.Value(uint32(p.n))))(t)
		p.add(z, want, at)
	case 5:
		by := p.r.Uint32N(1000)
		p.note("s%d: %d += %d", k, i, by)
		grid := cuda.Dim{X: (p.n + 15) / 16}
		must(0, s.Launch(p.bumps[at], grid, cuda.Dim{X: 16}, 0, cuda.Out(v.x), cuda.Value(by), cuda.Value(uint32(p.n))))(t)
		for e := range v.want {
			v.want[e] += by
		}
	case 6:
		p.note("release %d", i)
		v.x.Release()
		p.drop(i)
	case 7:
		to := p.r.IntN(len(p.devices))
		p.note("%d to device %d", i, to)
		moved := must(tensor.To(context.Background(), v.x.Reuse(), p.devices[to].Memory()))(t)
		p.values[i] = value{moved, v.want, to}
	case 8:
		return p.check(t, i)
	}
	return ""
}

func (p *program) upload(t testing.TB, device int) {
	data := make([]uint32, p.n)
	for e := range data {
		data[e] = p.r.Uint32()
	}
	p.note("%d to device %d from the host", len(p.values), device)
	x := must(tensor.Of(data, p.n))(t)
	p.add(must(tensor.To(context.Background(), x.Reuse(), p.devices[device].Memory()))(t), data, device)
}

// check downloads a value.
func (p *program) check(t testing.TB, i int) string {
	v := p.values[i]
	p.note("check %d", i)
	back := must(tensor.To(context.Background(), v.x, nil))(t)
	defer back.Release()
	if got := must(tensor.Values[uint32](back))(t); !slices.Equal(got, v.want) {
		return fmt.Sprintf("value %d: got %v, want %v", i, got, v.want)
	}
	return ""
}

// Every read sees what the order of the calls promises, on whatever streams and
// devices they were.
func TestRandomPrograms(t *testing.T) {
	before := memory.Stats().Handles
	for seed := *firstSeed; seed < *firstSeed+uint64(*programs); seed++ {
		if fault, _ := runProgram(t, seed, 0); fault != "" {
			t.Fatalf("-programs 1 -seed %d: %s", seed, fault)
		}
	}
	if now := memory.Stats().Handles; now != before {
		t.Errorf("got %d handles, want the %d of before", now, before)
	}
}

// A program that forgets one wait is found: not each one, because a wait for
// work that happens to be complete changes nothing, but among few seeds one.
func TestForgottenWaitIsFound(t *testing.T) {
	found, tried := 0, 0
	for seed := uint64(1); seed <= 40; seed++ {
		_, waits := runProgram(t, seed, 0)
		for skip := int64(1); skip <= min(waits, 8); skip++ {
			tried++
			if fault, _ := runProgram(t, seed, skip); fault != "" {
				found++
			}
		}
	}
	t.Logf("found %d of %d", found, tried)
	if found < tried/10 || tried < 50 {
		t.Errorf("found %d of %d forgotten waits, want at least a tenth of 50 or more", found, tried)
	}
}
