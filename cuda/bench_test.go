package cuda_test

import (
	"testing"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/memory"
)

// BenchmarkCachedBlock compares the allocation and release of a block that is
// kept, on a device and in an arena of the host. Neither calls a driver or the
// system.
func BenchmarkCachedBlock(b *testing.B) {
	const bytes = 64 << 10
	run := func(b *testing.B, from memory.Source) {
		b.ReportAllocs()
		for b.Loop() {
			buf, err := from.Alloc(bytes)
			if err != nil {
				b.Fatal(err)
			}
			buf.Release()
		}
	}
	b.Run("device", func(b *testing.B) {
		d, s := benchDevice(b)
		buf := must(d.Arena().Alloc(bytes, memory.Activations))(b)
		buf.Release()
		run(b, s.Source(memory.Activations))
	})
	b.Run("host", func(b *testing.B) {
		a := must(memory.NewArena(1<<30, memory.Activations))(b)
		defer a.Close()
		run(b, a)
	})
}

// benchDevice returns a device of the computer or, without one, of a machine,
// for benchmarks in which the driver has no part.
func benchDevice(b *testing.B) (*cuda.Device, *cuda.Stream) {
	c, err := cuda.Open()
	if err != nil {
		c = must(cuda.New(fake.New(fake.Config{})))(b)
	}
	d := must(c.Device(0))(b)
	s := must(d.NewStream())(b)
	b.Cleanup(func() {
		must(0, s.Close())(b)
		must(0, d.Close())(b)
	})
	return d, s
}
