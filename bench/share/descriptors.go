package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// shared counts the descriptors that a process has open while tensors are
// shared.
type shared struct {
	who             string
	sockets, arenas int
}

// countDescriptors shares n tensors at once, of 4 KiB each, and looks at owners
// and consumers in Go and, if there is one, in Python.
func countDescriptors(ctx context.Context, self, python string, n int) ([]shared, error) {
	all, err := ownInGo(ctx, exec.CommandContext(ctx, self, consumeHold), "Go", n)
	if err != nil || python == "" {
		return all, err
	}
	toPython, err := ownInGo(ctx, clientCommand(ctx, python, "hold"), "Python", n)
	if err != nil {
		return nil, err
	}
	inPython, err := ownInPython(ctx, python, n)
	return append(all, inPython, toPython[1]), err
}

// ownInGo looks at this process, as an owner, and at the consumer that it
// starts.
func ownInGo(ctx context.Context, cmd *exec.Cmd, language string, n int) ([]shared, error) {
	owner, err := share.NewOwner()
	if err != nil {
		return nil, err
	}
	defer owner.Close()
	before, err := descriptors(os.Getpid())
	if err != nil {
		return nil, err
	}
	h, err := startHolder(ctx, cmd, owner)
	if err != nil {
		return nil, err
	}
	err = h.hold(n, func() error {
		x, err := tensor.Make(owner, dtype.U8, shape.MustOf(4096))
		if err != nil {
			return err
		}
		return errors.Join(h.peer.Offer(ctx, x), x.Release())
	})
	if err != nil {
		return nil, err
	}
	ours, err := countOpen("Go owner", os.Getpid(), before)
	if err != nil {
		return nil, err
	}
	theirs, err := countOpen(language+" consumer", h.cmd.Process.Pid, nil)
	return []shared{ours, theirs}, errors.Join(err, h.in.Close(), h.cmd.Wait())
}

// ownInPython looks at an owner in Python that has a consumer of its own.
func ownInPython(ctx context.Context, python string, n int) (s shared, err error) {
	cmd := clientCommand(ctx, python, "lend", strconv.Itoa(n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return s, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return s, err
	}
	if err := cmd.Start(); err != nil {
		return s, err
	}
	if err := readHeld(bufio.NewReader(out)); err != nil {
		return s, err
	}
	s, err = countOpen("Python owner", cmd.Process.Pid, nil)
	return s, errors.Join(err, in.Close(), cmd.Wait())
}
