package cuda_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/share"
)

// startConsumer starts testdata/consumer.py with a driver in C that shares
// memory with that of tests.
func startConsumer(t *testing.T, dir string, env ...string) *proc {
	t.Helper()
	python := pythontest.Interpreter(t, "numpy")
	library := filepath.Join(t.TempDir(), "libcuda.so.1")
	compileC(t, library, "../python/tests/libcuda.c")
	cmd := exec.Command(python, "testdata/consumer.py")
	cmd.Env = append(pythontest.Env(".."), "TENURE_SHARE_DIR="+dir, "TENURE_LIBCUDA="+library)
	cmd.Env = append(cmd.Env, env...)
	return startProc(t, "python", cmd)
}

// compiled is the driver in C, after the first test that needs it.
var compiled []byte

// compileC makes a library, or skips the test where there is no C compiler.
func compileC(t *testing.T, library, source string) {
	t.Helper()
	if compiled != nil {
		must(0, os.WriteFile(library, compiled, 0o755))(t)
		return
	}
	for _, cc := range []string{os.Getenv("CC"), "gcc", "clang", "cc"} {
		path, err := exec.LookPath(cc)
		if err != nil {
			continue
		}
		if out, err := exec.Command(path, "-O1", "-shared", "-fPIC", "-pthread", "-o", library, source).CombinedOutput(); err != nil {
			t.Skipf("%s cannot compile %s: %v\n%s", path, source, err, out)
		}
		compiled = must(os.ReadFile(library))(t)
		return
	}
	t.Skipf("no C compiler (gcc, clang or cc) to compile %s", source)
}

// TestSharePython gives tensors of a device to the Python client, whose stream
// reads them behind the owner's work, and takes them back after its own.
func TestSharePython(t *testing.T) {
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, fake.Config{Mode: mode, Seed: 3})
			dir := filepath.Join(t.TempDir(), "s")
			o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
			l := must(o.Listen("python", share.InDir(dir)))(t)
			consumer := startConsumer(t, dir)
			ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
			defer cancel()
			p := must(l.Accept(ctx))(t)
			pair := &pair{owner: o}
			for i := range 60 {
				x := pair.numbers(t, 1+i*37, float32(i))
				var opts []share.OfferOption
				if i%3 > 0 {
					opts = append(opts, share.BeforeWork())
				}
				must(0, p.Offer(ctx, x, append(opts, share.Label(fmt.Sprint("numbers ", i)))...))(t)
				x.Release()
			}
			must(0, l.Close())(t)
			must(0, p.Close())(t)
			if wrong := consumer.finish(false); len(wrong) > 0 {
				t.Error(wrong)
			}
			eventually(t, "the leases end", func() bool { return len(o.Outstanding()) == 0 && o.State().Bytes.Used == 0 })
			must(0, o.Close())(t)
			eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
		})
	}
}

// TestSharePythonWaits: a stream of the client waits for the owner's work.
func TestSharePythonWaits(t *testing.T) {
	r := newRig(t, fake.Config{Mode: fake.Lazy, Queries: 1 << 30, Idle: time.Hour})
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	l := must(o.Listen("python", share.InDir(dir)))(t)
	consumer := startConsumer(t, dir)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := must(l.Accept(ctx))(t)
	x := (&pair{owner: o}).numbers(t, 100, 1)
	eventually(t, "the client opens the event", func() bool {
		err := p.Offer(ctx, x, share.BeforeWork(), share.NoWait(), share.Label("late 1"))
		return err == nil
	})
	if first := <-consumer.lines; first != "late" {
		t.Fatal(first)
	}
	r.finish(t, r.devices[0].Main())
	must(0, l.Close())(t)
	must(0, p.Close())(t)
	if wrong := consumer.finish(false); len(wrong) > 0 {
		t.Error(wrong)
	}
	must(0, x.Release())(t)
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}

// TestSharePythonDies kills the client at each of its steps, and while it holds
// a tensor. Nothing that it had is lost.
func TestSharePythonDies(t *testing.T) {
	for _, step := range []int{0, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			if testing.Short() && step > 0 {
				t.Skip("a process for each step")
			}
			r := newRig(t, fake.Config{Mode: fake.Lazy})
			dir := filepath.Join(t.TempDir(), "s")
			o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
			l := must(o.Listen("python", share.InDir(dir)))(t)
			consumer := startConsumer(t, dir, "TENURE_INVARIANTS=1", fmt.Sprint("TENURE_CRASH_AT=", step))
			offerUntilGone(t, o, l, consumer, step == 0)
			if wrong := consumer.finish(true); len(wrong) > 0 {
				t.Error(wrong)
			}
			eventually(t, "the leases end", func() bool { return len(o.Outstanding()) == 0 && o.State().Bytes.Used == 0 })
			must(0, l.Close())(t)
			must(0, o.Close())(t)
			eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
		})
	}
}

// offerUntilGone offers tensors whose work is not complete, and ends arenas,
// until the client is dead. With hold it kills the client while it holds one.
func offerUntilGone(t *testing.T, o *share.Owner, l *share.Listener, consumer *proc, hold bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	go func() {
		<-consumer.ended
		cancel()
	}()
	p, err := l.Accept(ctx)
	for i := 0; err == nil && ctx.Err() == nil; i++ {
		label := fmt.Sprint("numbers ", i)
		if hold {
			label = "hold"
		}
		x := (&pair{owner: o}).numbers(t, 100, float32(i))
		err = p.Offer(ctx, x, share.BeforeWork(), share.Label(label))
		x.Release()
		if hold && consumer.await("holds", nil) {
			if n := len(o.Outstanding()); n != 1 {
				t.Errorf("got %d leases, want 1", n)
			}
			must(0, consumer.cmd.Process.Kill())(t)
			return
		}
		if i%10 == 9 {
			eventually(t, "the leases end", func() bool { return len(o.Outstanding()) == 0 || ctx.Err() != nil })
			o.Collect()
		}
	}
}

// TestSharePythonWithoutDriver: the owner and the client are told in one line.
func TestSharePythonWithoutDriver(t *testing.T) {
	r := newRig(t, fake.Config{})
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	l := must(o.Listen("python", share.InDir(dir)))(t)
	x := (&pair{owner: o}).numbers(t, 100, 1)
	must(0, o.Publish("weights", x))(t)
	cmd := exec.Command(pythontest.Interpreter(t, "numpy"), "-c", `
import tenure
peer = tenure.attach("python")
try: peer.get("weights", 30)
except tenure.RefusedError as e: print(e)
try: peer.receive(30)
except tenure.DeviceError as e: print(e)
print("clean")
`)
	cmd.Env = append(pythontest.Env(".."), "TENURE_SHARE_DIR="+dir, "TENURE_LIBCUDA="+filepath.Join(dir, "libcuda.so.1"))
	consumer := startProc(t, "python", cmd)
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	p := must(l.Accept(ctx))(t)
	if err := p.Offer(ctx, x); !errors.Is(err, share.ErrRefused) || !strings.Contains(err.Error(), "cuda: no driver: ") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want ErrRefused and one line that says why", err)
	}
	x.Release()
	if wrong := consumer.finish(false); len(wrong) > 0 {
		t.Error(wrong)
	}
	if said := consumer.said; len(said) != 3 || !strings.Contains(said[0], "cuda: no driver: ") || !strings.HasPrefix(said[1], "cuda: no driver: ") {
		t.Errorf("got %q, want a line of each call that says why", said)
	}
	must(0, l.Close())(t)
	must(0, p.Close())(t)
	must(0, o.Close())(t)
}

const torchConsumer = `
import tenure, torch
for received in tenure.attach("python"):
    y = torch.from_dlpack(received)
    print(received.label, y.device.type, int(y.double().sum().item()), flush=True)
    del y
    received.release()
print("clean")
`

// TestSharePythonTorch gives tensors of the computer's device to PyTorch in
// another process, by the client.
func TestSharePythonTorch(t *testing.T) {
	r := realRig(t, 1)
	dir := filepath.Join(t.TempDir(), "s")
	o := must(share.NewOwner(share.OnDevice(r.devices[0].Memory())))(t)
	l := must(o.Listen("python", share.InDir(dir)))(t)
	cmd := exec.Command(pythontest.Interpreter(t, "numpy", "torch"), "-c", torchConsumer)
	cmd.Env = append(pythontest.Env(".."), "TENURE_SHARE_DIR="+dir)
	consumer := startProc(t, "python", cmd)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p := must(l.Accept(ctx))(t)
	for i, n := range []int{1, 1000, 4 << 20, 1000} {
		x := (&pair{owner: o}).numbers(t, n, float32(i))
		var opts []share.OfferOption
		if i%2 > 0 {
			opts = append(opts, share.BeforeWork())
		}
		must(0, p.Offer(ctx, x, append(opts, share.Label(fmt.Sprint(i)))...))(t)
		x.Release()
		if got, want := <-consumer.lines, fmt.Sprintf("%d cuda %d", i, n*i+n*(n-1)/2); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	must(0, l.Close())(t)
	must(0, p.Close())(t)
	if wrong := consumer.finish(false); len(wrong) > 0 {
		t.Error(wrong)
	}
	eventually(t, "the leases end", func() bool { return len(o.Outstanding()) == 0 && o.State().Bytes.Used == 0 })
	must(0, o.Close())(t)
	eventually(t, "the arenas go", func() bool { return len(o.State().Arenas) == 0 })
}
