// Command cuda measures memory of CUDA devices beside that of the host.
//
//	go run ./cuda [flags]
//
// It allocates and releases kept blocks, exports tensors again and again, gives
// a tensor from one stream to another, and moves tensors between host and
// device and within the device. Each pair of measurements is taken in turns.
// Without a device it says so in one line and measures nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("cuda: ")
	flags := flag.NewFlagSet("cuda", flag.ExitOnError)
	turns := flags.Int("turns", 15, "measurements of each case")
	mib := flags.Int("mib", 256, "MiB of a tensor that is moved")
	number := flags.Int("device", 0, "number of the device")
	var output results.Output
	output.Flags(flags)
	flags.Parse(os.Args[1:])
	c, err := cuda.Open()
	if errors.Is(err, cuda.ErrNone) {
		fmt.Println(err)
		return
	}
	if err == nil {
		err = run(os.Stdout, c, *number, *turns, *mib<<20, output)
	}
	if err != nil {
		log.Fatal(err)
	}
}

// bench is a device with what the cases use.
type bench struct {
	d      *cuda.Device
	a, b   *cuda.Stream
	host   *memory.Arena
	turns  int
	bytes  int
	result *results.Result
}

func run(out io.Writer, c *cuda.Driver, number, turns, bytes int, output results.Output) error {
	d, err := c.Device(number)
	if err != nil {
		return err
	}
	b := &bench{d: d, turns: turns, bytes: bytes}
	b.result = results.New("cuda", map[string]string{"CUDA": c.Version(), "device": d.Info().Name}, "what")
	if b.a, err = d.NewStream(); err != nil {
		return err
	}
	if b.b, err = d.NewStream(); err != nil {
		return err
	}
	if b.host, err = memory.NewArena(1<<32, memory.Activations); err != nil {
		return err
	}
	for _, f := range []func() error{b.blocks, b.exports, b.donations, b.moves} {
		if err := f(); err != nil {
			return err
		}
	}
	if err := errors.Join(b.a.Close(), b.b.Close(), d.Close(), b.host.Close()); err != nil {
		return err
	}
	return output.Write(out, b.result, nil)
}

// inTurns measures both functions in turns, n calls at a time, in nanoseconds
// of a call.
func (b *bench) inTurns(n int, ours, other func() error) (x, y []int64, err error) {
	measure := func(f func() error) int64 {
		began := time.Now()
		for range n {
			if e := f(); e != nil {
				err = e
				return 0
			}
		}
		return int64(time.Since(began)) / int64(n)
	}
	measure(ours)
	measure(other)
	for i := range b.turns {
		if i%2 == 0 {
			x = append(x, measure(ours))
			y = append(y, measure(other))
		} else {
			y = append(y, measure(other))
			x = append(x, measure(ours))
		}
	}
	return x, y, err
}

// compare adds a row of times in nanoseconds.
func (b *bench) compare(what string, n int, ours, other func() error) error {
	x, y, err := b.inTurns(n, ours, other)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	b.result.Add([]string{what}, results.Samples("device ns", 1, x), results.Samples("host ns", 1, y), results.Ratios("ratio", x, y))
	return nil
}

// blocks takes kept blocks and gives them back.
func (b *bench) blocks() error {
	from := func(src memory.Source) func() error {
		return func() error {
			buf, err := src.Alloc(64 << 10)
			if err != nil {
				return err
			}
			return buf.Release()
		}
	}
	return b.compare("kept block of 64 KiB", 20000, from(b.a.Source(memory.Activations)), from(b.host))
}

// exports exports tensors that were exported before.
func (b *bench) exports() error {
	sh, err := shape.Of(2, 3)
	if err != nil {
		return err
	}
	near, err := tensor.New(dtype.F32, sh)
	if err != nil {
		return err
	}
	defer near.Release()
	far, err := b.a.Zeros(dtype.F32, sh)
	if err != nil {
		return err
	}
	defer far.Release()
	of := func(x *tensor.Tensor) func() error {
		return func() error {
			m, err := dlpack.Export(x)
			if err == nil {
				m.Delete(nil)
			}
			return err
		}
	}
	return b.compare("cached export and its deletion", 20000, of(far), of(near))
}

// donations gives a tensor from one stream to the other at each step, or leaves
// it on one stream.
func (b *bench) donations() error {
	sh, err := shape.Of(16)
	if err != nil {
		return err
	}
	x, err := b.a.Zeros(dtype.F32, sh)
	if err != nil {
		return err
	}
	step := 0
	across := func() (err error) {
		step++
		s := b.a
		if step%2 == 0 {
			s = b.b
		}
		x, err = s.Fill(x.Donate(), float32(1))
		return err
	}
	along := func() (err error) {
		x, err = b.a.Fill(x.Donate(), float32(1))
		return err
	}
	crossing, staying, err := b.inTurns(1000, across, along)
	if err != nil {
		return err
	}
	b.result.Add([]string{"donation to work on another stream"}, results.Samples("device ns", 1, crossing), results.Samples("same stream ns", 1, staying),
		results.Ratios("ratio", crossing, staying))
	return x.Release()
}

// moves copies a large tensor.
func (b *bench) moves() error {
	ctx := context.Background()
	sh, err := shape.Of(b.bytes / 4)
	if err != nil {
		return err
	}
	near, err := tensor.New(dtype.F32, sh)
	if err != nil {
		return err
	}
	defer near.Release()
	far, err := tensor.To(ctx, near, b.d.Memory())
	if err != nil {
		return err
	}
	defer far.Release()
	wait := func(x *tensor.Tensor, err error) error {
		if err != nil {
			return err
		}
		defer x.Release()
		if err := b.a.Sync(ctx); err != nil {
			return err
		}
		return b.d.Main().Sync(ctx)
	}
	for _, c := range []struct {
		what  string
		bytes int // moved, those that are read and those that are written
		do    func() error
	}{
		{"host to device", b.bytes, func() error { return wait(tensor.To(ctx, near, b.d.Memory())) }},
		{"device to host", b.bytes, func() error { return wait(tensor.To(ctx, far, nil)) }},
		{"copy on the device", 2 * b.bytes, func() error { return wait(b.a.Copy(far)) }},
		{"fill on the device", b.bytes, func() error { return wait(b.a.Fill(far, float32(1))) }},
		{"add on the device", 3 * b.bytes, func() error { return wait(b.a.Add(far, far)) }},
	} {
		times, _, err := b.inTurns(1, c.do, func() error { return nil })
		if err != nil {
			return fmt.Errorf("%s: %w", c.what, err)
		}
		rates := make([]float64, len(times))
		for i, t := range times {
			rates[i] = float64(c.bytes) / float64(t)
		}
		b.result.Add([]string{fmt.Sprintf("%s, %d MiB", c.what, b.bytes>>20)}, results.Samples("GB/s", 1, rates))
	}
	return nil
}
