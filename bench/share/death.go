package main

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"time"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// death is what happened after a consumer was killed, in nanoseconds from the
// kill.
type death struct {
	end  int64 // the end of file of a socket that nobody but the kernel has to do with
	free int64 // the block can be used again
}

// killConsumers kills processes that hold a tensor whose owner has let go.
func killConsumers(ctx context.Context, self string, kills int) ([]death, error) {
	owner, err := share.NewOwner()
	if err != nil {
		return nil, err
	}
	defer owner.Close()
	var all []death
	for range kills {
		d, err := killOne(ctx, self, owner)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, nil
}

// killOne gives the process the bare socket too, so that both are closed by one
// death.
func killOne(ctx context.Context, self string, owner *share.Owner) (d death, err error) {
	ours, theirs, err := share.Pair()
	if err != nil {
		return d, err
	}
	conn, err := net.FileConn(ours)
	if err := errors.Join(err, ours.Close()); err != nil {
		return d, err
	}
	defer conn.Close()
	h, err := startHolder(ctx, exec.CommandContext(ctx, self, consumeHold), owner, theirs)
	if err != nil {
		return d, err
	}
	x, err := tensor.Make(owner, dtype.U8, shape.MustOf(1<<20))
	if err != nil {
		return d, err
	}
	err = h.hold(1, func() error { return h.peer.Offer(ctx, x) })
	if err := errors.Join(err, x.Release()); err != nil { // now the lease alone keeps it
		return d, err
	}
	ended := make(chan time.Time, 1)
	go func() {
		var b [1]byte
		_, _ = conn.Read(b[:]) // whatever it says, it is the end
		ended <- time.Now()
	}()
	start := time.Now()
	if err := h.cmd.Process.Kill(); err != nil {
		return d, err
	}
	for owner.State().Bytes.Used > 0 {
		if time.Since(start) > 10*time.Second {
			return d, errors.New("the block of a killed process is not free after ten seconds")
		}
		time.Sleep(20 * time.Microsecond)
	}
	d.free = time.Since(start).Nanoseconds()
	d.end = (<-ended).Sub(start).Nanoseconds()
	_ = h.cmd.Wait() // it was killed
	return d, nil
}
