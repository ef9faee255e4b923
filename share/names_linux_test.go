package share

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/memory/memorytest"
)

func init() { roles["child"], roles["listener"] = childRole, listenerRole }

// childRole offers every tensor of its parent back to it.
func childRole() error {
	o, err := NewOwner()
	if err != nil {
		return err
	}
	p, err := o.Parent(context.Background())
	if err != nil {
		return err
	}
	if _, err := o.Parent(context.Background()); !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("a parent twice: got %v, want ErrNotFound", err)
	}
	for {
		r, err := p.Receive(context.Background())
		if errors.Is(err, io.EOF) {
			return o.Close()
		}
		if err != nil {
			return err
		}
		if err := p.Offer(context.Background(), r.Tensor, Label("back: "+r.Label)); err != nil {
			return err
		}
		r.Tensor.Release()
	}
}

func TestChild(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVar+"=child")
	ours := ok(Command(cmd))(t)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles[0].Close()
	o := ok(NewOwner())(t)
	p := ok(o.Attach(t.Context(), ours))(t)
	if p.Info().PID != cmd.Process.Pid && p.Info().PID != os.Getpid() { // the kernel knows the maker of a socketpair
		t.Errorf("the peer is %+v, want process %d", p.Info(), cmd.Process.Pid)
	}
	for _, n := range []int{10, 100000} {
		x := build(t, o, n)
		if err := p.Offer(t.Context(), x, Label(fmt.Sprint(n))); err != nil {
			t.Fatal(err)
		}
		r := receive(t, p)
		if want := ok(x.Copy(0))(t); r.Label != fmt.Sprintf("back: %d", n) || sum(t, r.Tensor) != sum(t, want) {
			t.Errorf("got %q %s back, want the %d that were sent", r.Label, r.Tensor.Shape(), n)
			mustRelease(t, want)
		} else {
			mustRelease(t, want)
		}
		mustRelease(t, x, r.Tensor)
	}
	o.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the child ended with %v: %s", err, said.String())
	}
}

func TestNames(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	memorytest.Check(t)
	dir := filepath.Join(t.TempDir(), "new", "share")
	o := ok(NewOwner())(t)
	defer o.Close()
	if _, err := o.Dial(t.Context(), "camera", InDir(dir)); !errors.Is(err, ErrNotFound) {
		t.Errorf("dial without a listener: got %v, want ErrNotFound", err)
	}
	l := ok(o.Listen("camera", InDir(dir)))(t)
	if _, err := o.Listen("camera", InDir(dir)); !errors.Is(err, ErrRefused) {
		t.Errorf("a name twice: got %v, want ErrRefused", err)
	}
	info := ok(os.Stat(l.Path()))(t)
	if info.Mode().Perm() != 0o600 || l.Path() != filepath.Join(dir, "camera.sock") {
		t.Errorf("socket %s has mode %s, want 0600", l.Path(), info.Mode())
	}
	other := ok(NewOwner())(t)
	defer other.Close()
	dialled := ok(other.Dial(t.Context(), "camera", InDir(dir)))(t)
	accepted := ok(l.Accept(t.Context()))(t)
	if accepted.Info().PID != os.Getpid() || accepted.Info().Instance != dialled.Info().Instance {
		t.Errorf("accepted %+v, dialled %+v, want this process twice", accepted.Info(), dialled.Info())
	}
	if names := ok(Names(InDir(dir)))(t); len(names) != 1 || names[0] != (Name{Name: "camera"}) {
		t.Errorf("names: got %v, want camera", names)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept: got %v, want DeadlineExceeded", err)
	}
	l.Close()
	if _, err := l.Accept(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("accept of a closed listener: got %v, want ErrClosed", err)
	}
	if left := ok(os.ReadDir(dir))(t); len(left) != 0 {
		t.Errorf("after close %d files are left", len(left))
	}
	x := build(t, o, 3)
	if err := accepted.Offer(t.Context(), x); err != nil {
		t.Errorf("a peer of a closed listener: %v", err)
	}
	r := receive(t, dialled)
	mustRelease(t, x, r.Tensor)
	again := ok(o.Listen("camera", InDir(dir)))(t)
	o.Close()
	if _, err := again.Accept(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("accept after the owner's close: got %v, want ErrClosed", err)
	}
}

func TestNamesThatAreRefused(t *testing.T) {
	skipElsewhere(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	dir := t.TempDir()
	os.Chmod(dir, 0o700)
	for _, name := range []string{"", ".hidden", "a/b", "ä", "a b", strings.Repeat("x", 65)} {
		if _, err := o.Listen(name, InDir(dir)); err == nil || !strings.Contains(err.Error(), "want 1 to 64") {
			t.Errorf("listen to %q: got %v", name, err)
		}
		if _, err := o.Dial(t.Context(), name, InDir(dir)); err == nil || !strings.Contains(err.Error(), "want 1 to 64") {
			t.Errorf("dial %q: got %v", name, err)
		}
	}
	long := filepath.Join(dir, strings.Repeat("d", 100))
	if _, err := o.Listen("x", InDir(long)); err == nil || !strings.Contains(err.Error(), "choose a shorter directory") {
		t.Errorf("a long path: got %v", err)
	}
	os.Chmod(dir, 0o755)
	if _, err := o.Listen("x", InDir(dir)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "0755") {
		t.Errorf("a directory that others may enter: got %v, want ErrRefused", err)
	}
	os.Chmod(dir, 0o700)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Listen("x", InDir(file)); err == nil {
		t.Error("a file was taken for a directory")
	}
}

// listenerRole listens until it is killed.
func listenerRole() error {
	o, err := NewOwner()
	if err != nil {
		return err
	}
	if _, err := o.Listen("camera"); err != nil {
		return err
	}
	say("ready")
	select {}
}

// TestKilledListener: the files that it leaves do not prevent another listener.
func TestKilledListener(t *testing.T) {
	skipElsewhere(t)
	dir := filepath.Join(t.TempDir(), "s")
	kill := func() {
		p := startRole(t, "listener", dir, "listener")
		if !p.await("ready", nil) {
			t.Fatalf("the listener says %q", p.said)
		}
		p.cmd.Process.Kill()
		<-p.ended
		if left := ok(os.ReadDir(dir))(t); len(left) != 2 {
			t.Fatalf("a killed listener left %d files, want socket and lock", len(left))
		}
	}
	kill()
	o := ok(NewOwner())(t)
	defer o.Close()
	if _, err := o.Dial(t.Context(), "camera", InDir(dir)); !errors.Is(err, ErrNotFound) {
		t.Errorf("dial a dead name: got %v, want ErrNotFound", err)
	}
	l := ok(o.Listen("camera", InDir(dir)))(t)
	l.Close()
	kill()
	if names := ok(Names(InDir(dir)))(t); len(names) != 1 || !names[0].Stale {
		t.Errorf("names: got %v, want camera, stale", names)
	}
	checkNothingLeft(t, dir)
}

// TestFolderBelowASetgidParent: the bit that the folder inherits grants no
// access. Only the access rights of others matter.
func TestFolderBelowASetgidParent(t *testing.T) {
	skipElsewhere(t)
	checkDescriptors(t)
	o := ok(NewOwner())(t)
	defer o.Close()
	parent := t.TempDir()
	if err := os.Chmod(parent, 0o770|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(parent, "s")
	l, err := o.Listen("setgid", InDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	if mode := ok(os.Stat(dir))(t).Mode(); mode&os.ModeSetgid == 0 {
		t.Skipf("got a folder with mode %v, want one that has inherited the bit", mode)
	}
	if p := ok(Dial(t.Context(), "setgid", InDir(dir)))(t); p.o.Close() != nil {
		t.Error("the dialler's owner cannot be closed")
	}
	l.Close()
	if err := os.Chmod(dir, 0o710|os.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Listen("setgid", InDir(dir)); !errors.Is(err, ErrRefused) {
		t.Errorf("a folder that the group may enter: got %v, want ErrRefused", err)
	}
}
