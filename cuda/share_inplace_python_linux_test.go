package cuda_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/share"
)

// TestSharePythonInPlace gives tensors of a library to the Python client in
// place. The library has each back after the client's work, and frees its
// segments while the client lives.
func TestSharePythonInPlace(t *testing.T) {
	r := newRig(t, fake.Config{})
	lib := newTestLibrary(t, r.Machine, 3)
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory()), share.InPlace()))(t)
	l := must(o.Listen("python", share.InDir(dir)))(t)
	consumer := startConsumer(t, dir)
	p := must(l.Accept(t.Context()))(t)
	const n = 40
	for i := range n {
		x := must(lib.numbers(float32(i), 1+i*25))(t)
		opts := []share.OfferOption{share.WithoutCopy(), share.Label(fmt.Sprint("numbers ", i))}
		if i%2 == 0 {
			opts = append(opts, share.BeforeWork())
		}
		must(0, p.Offer(t.Context(), x, opts...))(t)
		if i%3 == 0 {
			must(0, p.Offer(t.Context(), x, opts...))(t)
		}
		x.Release()
	}
	eventually(t, "all come back", func() bool { return lib.deletions() == n })
	if n := o.State().Bytes.Copied; n != 0 {
		t.Errorf("got %d bytes copied, want none", n)
	}
	must(0, l.Close())(t)
	must(0, p.Close())(t)
	if wrong := consumer.finish(false); len(wrong) > 0 {
		t.Error(wrong)
	}
	must(0, o.Close())(t)
}

// TestSharePythonInPlaceDies kills the client at each of its steps. The library
// has everything back, and frees nothing that a living process has open.
func TestSharePythonInPlaceDies(t *testing.T) {
	for _, step := range []int{0, 23, 24, 25, 26, 27, 28, 29, 30, 31} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			if testing.Short() && step > 0 {
				t.Skip("a process for each step")
			}
			r := newRig(t, fake.Config{})
			lib := newTestLibrary(t, r.Machine, 2)
			dir := filepath.Join(t.TempDir(), "s")
			o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory()), share.InPlace()))(t)
			l := must(o.Listen("python", share.InDir(dir)))(t)
			consumer := startConsumer(t, dir, "TENURE_INVARIANTS=1", fmt.Sprint("TENURE_CRASH_AT=", step))
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			go func() {
				<-consumer.ended
				cancel()
			}()
			p := must(l.Accept(ctx))(t)
			label, sent := "numbers 5", 0
			if step == 0 {
				label = "hold 5"
			}
			for ctx.Err() == nil {
				x := must(lib.numbers(5, 100))(t)
				sent++
				err := p.Offer(ctx, x, share.WithoutCopy(), share.Label(label))
				x.Release()
				if err != nil {
					break
				}
				if step == 0 {
					consumer.await("holds", nil)
					if n := lib.deletions(); n != 0 {
						t.Errorf("got %d tensors back while the client holds one, want none", n)
					}
					must(0, consumer.cmd.Process.Kill())(t)
					break
				}
				eventually(t, "the lease ends", func() bool { return len(o.Outstanding()) == 0 || ctx.Err() != nil })
			}
			if wrong := consumer.finish(true); len(wrong) > 0 {
				t.Error(wrong)
			}
			eventually(t, "all come back", func() bool { return lib.deletions() == sent })
			must(0, l.Close())(t)
			must(0, o.Close())(t)
		})
	}
}
