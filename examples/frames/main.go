// Command frames is a service that hands camera frames of 1920 x 1080 pixels to
// two Python workers without copying them. One of the workers keeps dying with
// a frame in its hands; the other one does not notice, and no byte stays
// behind.
//
//	go run ./examples/frames [PYTHON]
//
// PYTHON is the interpreter of the workers, python3 by default; it must have
// numpy. Run it in the root of the repository, or with package tenure
// installed.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

//go:embed worker.py
var source string

func main() {
	python := "python3"
	if len(os.Args) > 1 {
		python = os.Args[1]
	}
	if err := run(context.Background(), python, "python", 150, 20*time.Millisecond, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run hands a frame to the workers every so often and prints what became of
// them. client is the folder of the Python client.
func run(ctx context.Context, python, client string, frames int, every time.Duration, out io.Writer) error {
	owner, err := share.NewOwner(share.WithLimit(256 << 20))
	if err != nil {
		return err
	}
	defer owner.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	env := os.Environ()
	if dir, err := filepath.Abs(client); err == nil {
		env = append(env, "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1")
	}
	steady := &worker{name: "steady", owner: owner, python: python, env: env}
	crashing := &worker{name: "crashing", owner: owner, python: python, env: env, diesAt: 5}
	var done sync.WaitGroup
	for _, w := range []*worker{steady, crashing} {
		w.failed = make(chan error, 1)
		done.Go(func() {
			if err := w.keep(ctx); err != nil {
				w.failed <- err
				cancel()
			}
		})
	}
	err = film(ctx, owner, frames, every, steady, crashing)
	cancel()
	done.Wait()
	for _, w := range []*worker{steady, crashing} {
		select {
		case failed := <-w.failed:
			err = failed
		default:
		}
	}
	if err != nil {
		return err
	}
	for _, w := range []*worker{steady, crashing} {
		fmt.Fprintf(out, "%s worker: %d frames offered, %d answers, %d deaths\n", w.name, w.offered, w.answers, w.deaths)
	}
	s := owner.State()
	fmt.Fprintf(out, "copied: %d bytes; still out: %d leases; still used: %d bytes\n", s.Bytes.Copied, len(s.Leases), s.Bytes.Used)
	return nil
}

// film makes frames in shared memory and offers each to the workers that live.
// It ends when the steady one has answered all.
func film(ctx context.Context, owner *share.Owner, frames int, every time.Duration, steady, crashing *worker) error {
	clock := time.NewTicker(every)
	defer clock.Stop()
	for i := range frames {
		<-clock.C
		if err := steady.await(ctx, func() bool { return steady.peer != nil }); err != nil {
			return err
		}
		frame, err := tensor.Make(owner, dtype.U8, shape.MustOf(1080, 1920, 3))
		if err != nil {
			return err
		}
		pixels, err := tensor.Write[uint8](frame)
		if err != nil {
			frame.Release()
			return err
		}
		for j := range pixels.Data {
			pixels.Data[j] = byte(i)
		}
		pixels.Release()
		err = errors.Join(steady.offer(ctx, frame, i), crashing.offer(ctx, frame, i))
		frame.Release() // the workers' leases keep the bytes
		if err != nil {
			return err
		}
	}
	if err := steady.await(ctx, func() bool { return steady.answers == frames }); err != nil {
		return err
	}
	// The crashing worker answers or dies; either way nothing of it stays out.
	return crashing.await(ctx, func() bool { return len(owner.Outstanding()) == 0 })
}

// worker is a Python process that is started again whenever it dies.
type worker struct {
	name   string
	owner  *share.Owner
	python string
	env    []string
	diesAt int
	failed chan error

	mu                       sync.Mutex
	peer                     *share.Peer // nil while no process runs
	offered, answers, deaths int
}

// keep starts the process, takes its answers until it dies, and starts it
// again, until ctx ends.
func (w *worker) keep(ctx context.Context) error {
	for ctx.Err() == nil {
		cmd := exec.CommandContext(ctx, w.python, "-c", source, fmt.Sprint(w.diesAt))
		cmd.Env, cmd.Stderr = append([]string(nil), w.env...), os.Stderr
		ours, err := share.Command(cmd)
		if err != nil {
			return err
		}
		err = cmd.Start()
		cmd.ExtraFiles[0].Close() // else its death would not be heard of
		if err != nil {
			ours.Close()
			if ctx.Err() != nil { // it was to start when all was over
				return nil
			}
			return err
		}
		peer, err := w.owner.Attach(ctx, ours)
		if err == nil {
			w.set(peer)
			err = w.take(ctx, peer)
			w.set(nil)
			peer.Close()
		}
		cmd.Process.Kill()
		_ = cmd.Wait()
		if ctx.Err() != nil {
			return nil
		}
		if !errors.Is(err, share.ErrClosed) || w.diesAt == 0 { // it did not die as it was meant to
			return fmt.Errorf("the %s worker: %w", w.name, err)
		}
		w.mu.Lock()
		w.deaths++
		w.mu.Unlock()
	}
	return nil
}

func (w *worker) set(p *share.Peer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.peer = p
}

// take checks answers: the mean of frame i is i in every colour.
func (w *worker) take(ctx context.Context, p *share.Peer) error {
	for {
		answer, err := p.Receive(ctx)
		if err != nil {
			return err
		}
		mean, err := tensor.Float64s(answer.Tensor)
		answer.Tensor.Release()
		if err != nil {
			return err
		}
		var i int
		if _, err := fmt.Sscanf(answer.Label, "frame %d", &i); err != nil {
			return err
		}
		if want := float64(byte(i)); len(mean) != 3 || mean[0] != want || mean[2] != want {
			return fmt.Errorf("%s: got the mean %v, want %v", answer.Label, mean, want)
		}
		w.mu.Lock()
		w.answers++
		w.mu.Unlock()
	}
}

// offer hands a frame to the worker if it lives, and waits while it has four in
// its hands. That it dies meanwhile is no fault.
func (w *worker) offer(ctx context.Context, frame *tensor.Tensor, i int) error {
	w.mu.Lock()
	p := w.peer
	if p != nil {
		w.offered++
	}
	w.mu.Unlock()
	if p == nil {
		return nil
	}
	err := p.Offer(ctx, frame, share.Label(fmt.Sprintf("frame %d", i)), share.WithoutCopy())
	if errors.Is(err, share.ErrClosed) {
		return nil
	}
	return err
}

// await looks every millisecond until something is so.
func (w *worker) await(ctx context.Context, so func() bool) error {
	for {
		w.mu.Lock()
		now := so()
		w.mu.Unlock()
		if now {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}
