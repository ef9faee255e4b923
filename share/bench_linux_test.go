package share

import (
	"context"
	"net"
	"os"
	"testing"

	"github.com/tenure-go/tenure/tensor"
)

// BenchmarkHandOver offers a tensor, receives and releases it, and waits until
// the lease is back, beside a round trip of small packets over the same kind of
// socket. Both ends are in this process.
func BenchmarkHandOver(b *testing.B) {
	skipElsewhere(b)
	b.Run("socket", func(b *testing.B) {
		fa, fb, err := Pair()
		if err != nil {
			b.Fatal(err)
		}
		ca, cb := packets(b, fa), packets(b, fb)
		defer ca.Close()
		go func() {
			buf := make([]byte, 512)
			for {
				n, err := cb.Read(buf)
				if err != nil || n == 0 {
					cb.Close()
					return
				}
				cb.Write(buf[:16])
			}
		}()
		buf := make([]byte, 512)
		for b.Loop() {
			ca.Write(buf[:264])
			ca.Read(buf)
		}
	})
	for name, floats := range map[string]int{"4KiB": 1 << 10, "64MiB": 1 << 24} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			pa, pb := connected(b, ok(NewOwner())(b), ok(NewOwner(WithCredits(1, 1<<40)))(b))
			x := build(b, pa.o, floats)
			defer mustRelease(b, x)
			go func() {
				for {
					r, err := pb.Receive(context.Background())
					if err != nil {
						return
					}
					v, err := tensor.Read[float32](r.Tensor)
					if err == nil {
						_ = v.Data[0] + v.Data[len(v.Data)-1]
						v.Release()
					}
					r.Tensor.Release()
				}
			}()
			for b.Loop() { // with one credit an offer waits until the one before is released
				if err := pa.Offer(context.Background(), x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func packets(b *testing.B, f *os.File) net.Conn {
	defer f.Close()
	return ok(net.FileConn(f))(b)
}
