package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// overloadOptions say how much more than it can answer a server is asked for.
type overloadOptions struct {
	lasts  time.Duration
	times  float64
	memory int64 // MiB
}

func (o *overloadOptions) flags(f *flag.FlagSet) {
	f.DurationVar(&o.lasts, "overload", 20*time.Second, "how long overload lasts")
	f.Float64Var(&o.times, "times", 10, "overload: requests for each that the server can answer")
	f.Int64Var(&o.memory, "memory", 64, "overload: the server's budget in MiB")
}

// mixed are the rows of requests under overload. Each is as likely.
var mixed = []int{16, 32, 64, 128, 256, 512, 1024}

// mostUnderWay is how many requests the generator has under way. One that would
// be more is not sent, and counted.
const mostUnderWay = 4096

// overload asks a server on one processor for more than it can answer, from
// another processor: as it is started by default, and with one request that
// waits.
func (b *bench) overload() error {
	dir, err := b.models("overload", modelSet{"wide": perceptron(256, 1024, 1024, 256)}, nil)
	if err != nil {
		return err
	}
	undo, err := pinProcess(1)
	if err != nil {
		return fmt.Errorf("two processors are needed: %w", err)
	}
	defer undo()
	for _, start := range []struct {
		name string
		args []string
	}{{"default", nil}, {"--queue 1 --patience 100ms", []string{"--queue", "1", "--patience", "100ms"}}} {
		if err := b.overloadCase(dir, start.name, start.args); err != nil {
			return err
		}
	}
	return nil
}

// kind is a size of request with the answer that it has.
type kind struct {
	ways []caller // over HTTP and gRPC
	want []byte
}

// outcome is what became of the requests of one span of time.
type outcome struct {
	mu       sync.Mutex
	answered []int64 // nanoseconds, sorted at the end
	refused  int
	wrong    []error // neither an answer that is right nor a refusal
	unsent   int
}

func (o *outcome) p99() int64 {
	t := turn{nanos: o.answered}
	return t.quantile(0.99)
}

func (b *bench) overloadCase(dir, name string, args []string) error {
	group, why := newGroup(11 * b.states() / 10)
	if why != nil {
		fmt.Fprintf(os.Stderr, "overload: no control group bounds the server: %v\n", why)
	}
	defer group.remove()
	s, err := b.tenureIn(group, append([]string{"--memory", strconv.FormatInt(b.load.memory, 10) + "MiB", dir}, args...)...)
	if err != nil {
		return err
	}
	defer s.stop()
	kinds, closed, err := kindsOf(s)
	if err != nil {
		return err
	}
	defer closed()
	unloaded := &outcome{}
	for begin, r := time.Now(), rand.New(rand.NewPCG(1, 2)); time.Since(begin) < min(b.load.lasts/4, 10*time.Second); {
		kinds[r.IntN(len(kinds))].send(r.IntN(2), unloaded)
	}
	slices.Sort(unloaded.answered)
	if len(unloaded.wrong) > 0 || len(unloaded.answered) == 0 {
		return fmt.Errorf("without load: got %d answers, %d refusals and %w", len(unloaded.answered), unloaded.refused, errors.Join(unloaded.wrong...))
	}
	var whole int64
	for _, n := range unloaded.answered {
		whole += n
	}
	capacity := float64(len(unloaded.answered)) / (float64(whole) / 1e9)
	before, err := s.metrics()
	if err != nil {
		return err
	}
	anonymous := make(chan int64)
	over := make(chan struct{})
	go func() { anonymous <- s.most("RssAnon", over) }()
	loaded := b.flood(kinds, capacity*b.load.times)
	close(over)
	private := float64(<-anonymous)
	after, err := s.metrics()
	if err != nil {
		return fmt.Errorf("the server after the load: %w", err)
	}
	if len(loaded.answered) == 0 {
		return fmt.Errorf("got no answers, %d refusals and %w", loaded.refused, errors.Join(loaded.wrong[:min(5, len(loaded.wrong))]...))
	}
	for _, err := range loaded.wrong[:min(5, len(loaded.wrong))] {
		fmt.Fprintln(os.Stderr, "overload: without an answer:", err)
	}
	const done = "nv_inference_request_success"
	answers := len(loaded.answered)
	states := after["tenure_promised_peak_bytes"] + float64(b.states()-b.load.memory<<20)
	measured := float64(s.resident("VmHWM"))
	figures := []results.Named{
		results.Once("capacity /s", capacity), results.Once("sent /s", float64(answers+loaded.refused+len(loaded.wrong))/b.load.lasts.Seconds()),
		results.Once("answered /s", float64(answers)/b.load.lasts.Seconds()), results.Once("answered", float64(answers)), results.Once("refused", float64(loaded.refused)),
		results.Once("without an answer", float64(len(loaded.wrong))), results.Once("not sent", float64(loaded.unsent)),
		results.Once("done and not received", after[done]-before[done]-float64(answers)),
		results.Once("unloaded p99 ms", float64(unloaded.p99())/1e6), results.Once("answered p99 ms", float64(loaded.p99())/1e6),
		results.Once("p99 / unloaded", float64(loaded.p99())/float64(unloaded.p99())),
		results.Once("stated MiB", states/(1<<20)), results.Once("resident MiB", measured/(1<<20)), results.Once("resident / stated", measured/states), results.Once("anonymous MiB", private/(1<<20)),
		results.Once("budget MiB", float64(b.load.memory)), results.Once("promised MiB", after["tenure_promised_peak_bytes"]/(1<<20)),
	}
	if peak, kills, err := group.figures(); err == nil {
		figures = append(figures, results.Once("group MiB", float64(peak)/(1<<20)), results.Once("killed", float64(kills)))
	}
	b.add([]string{"overload", name, fmt.Sprint(b.load.times)}, figures...)
	return s.end()
}

// states is what a server with this budget may have in memory: the budget is
// what a container has, less the part that is set aside for the process, an
// eighth or 64 MiB.
func (b *bench) states() int64 {
	budget := b.load.memory << 20
	return budget + max(budget/7, 64<<20)
}

// kindsOf makes the requests of all sizes, with the answers of a server that
// has nothing else to do.
func kindsOf(s *server) (kinds []*kind, closed func(), err error) {
	var ends []func()
	closed = func() {
		for _, f := range ends {
			f()
		}
	}
	for _, rows := range mixed {
		q := &request{model: "wide", shape: []int64{int64(rows), 256}, data: numbers(rows * 256)}
		http, end := overHTTP(s.address, q)
		ends = append(ends, end)
		rpc, end, err := overRPC(s.address, q)
		if err != nil {
			closed()
			return nil, nil, err
		}
		ends = append(ends, end)
		k := &kind{ways: []caller{nil, rpc()}}
		got, _, err := http()(context.Background())
		if err != nil {
			closed()
			return nil, nil, err
		}
		k.want = bytes.Clone(got)
		k.ways[0] = func(ctx context.Context) ([]byte, int, error) { return http()(ctx) }
		kinds = append(kinds, k)
	}
	return kinds, closed, nil
}

// send sends a request and notes what becomes of it.
func (k *kind) send(way int, o *outcome) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begin := time.Now()
	got, code, err := k.ways[way](ctx)
	took := time.Since(begin).Nanoseconds()
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil && bytes.Equal(got, k.want):
		o.answered = append(o.answered, took)
	case err == nil:
		o.wrong = append(o.wrong, errors.New("got an answer with other numbers"))
	case code == http.StatusServiceUnavailable:
		o.refused++
	default:
		o.wrong = append(o.wrong, err)
	}
}

// flood sends requests at a rate, whether or not those before are answered,
// and waits for what becomes of all.
func (b *bench) flood(kinds []*kind, perSecond float64) *outcome {
	o := &outcome{}
	r := rand.New(rand.NewPCG(3, 4))
	free := make(chan struct{}, mostUnderWay)
	var wg sync.WaitGroup
	begin := time.Now()
	for sent := 0; ; sent++ {
		due := time.Duration(float64(sent) / perSecond * float64(time.Second))
		if due > b.load.lasts {
			break
		}
		time.Sleep(due - time.Since(begin))
		k, way := kinds[r.IntN(len(kinds))], r.IntN(2)
		select {
		case free <- struct{}{}:
			wg.Go(func() {
				k.send(way, o)
				<-free
			})
		default:
			o.unsent++
		}
	}
	wg.Wait()
	slices.Sort(o.answered)
	return o
}
