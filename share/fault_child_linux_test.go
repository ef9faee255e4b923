package share_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/share"
)

// child is this test binary in a process of its own, which runs commands line
// by line.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	ended chan struct{}
}

const childPart = "TENURE_TEST_PART"

func startChild(t *testing.T, part string, change func(*exec.Cmd)) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestFaultChild$")
	cmd.Env = append(os.Environ(), childPart+"="+part)
	cmd.Stderr = os.Stderr
	if change != nil {
		change(cmd)
	}
	return startCommand(t, cmd)
}

func startCommand(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, in: in, lines: make(chan string, 100), ended: make(chan struct{})}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			c.lines <- s.Text()
		}
		close(c.lines)
		_ = cmd.Wait()
		close(c.ended)
	}()
	t.Cleanup(c.kill)
	return c
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Errorf("signal %v: %v", s, err)
	}
}

// stop stops it, and waits until the last of its threads has.
func (c *child) stop() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	eventually(c.t, "all threads are stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", c.cmd.Process.Pid))
		stopped := 0
		for _, f := range threads {
			text, _ := os.ReadFile(f)
			if _, state, ok := strings.Cut(string(text), ") "); ok && state[0] == 'T' {
				stopped++
			}
		}
		return err == nil && stopped > 0 && stopped == len(threads)
	})
}

// kill ends it and its children, if need be, and waits for that.
func (c *child) kill() {
	_ = c.in.Close()
	select {
	case <-c.ended:
		return
	default:
		_ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
	}
	for range c.lines {
	}
	<-c.ended
}

// tell sends a line and returns the answer.
func (c *child) tell(line string) string {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, line); err != nil {
		c.t.Fatalf("tell the child %q: %v", line, err)
	}
	return c.hear()
}

func (c *child) hear() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the child has ended")
		}
		return line
	case <-time.After(timeLimit):
		c.t.Fatal("the child says nothing")
	}
	return ""
}

func (c *child) want(line, answer string) {
	c.t.Helper()
	if got := c.tell(line); got != answer {
		c.t.Errorf("told the child %q: got %q, want %q", line, got, answer)
	}
}

// TestFaultChild is what children run.
func TestFaultChild(t *testing.T) {
	part, ok := map[string]func(*testing.T){"consumer": consumerChild, "owner": ownerChild, "keeper": keeperChild, "announcer": announcerChild}[os.Getenv(childPart)]
	if !ok {
		t.Skip("only by another test")
	}
	part(t)
}

// consumerChild dials and receives. Commands: "receive", "look" at all that it
// has, "release" all, "full" (no descriptor left), "room", "spawn" (a child
// that inherits the socket), "end".
func consumerChild(t *testing.T) {
	ctx := context.Background()
	var p *share.Peer
	var err error
	socket := -1
	if dir := os.Getenv("TENURE_TEST_DIR"); dir != "" {
		p, err = share.Dial(ctx, "host", share.InDir(dir))
	} else {
		if socket, err = unix.Dup(3); err != nil { // a careless program does this on purpose
			t.Fatal(err)
		}
		var o *share.Owner
		if o, err = share.NewOwner(); err == nil {
			p, err = o.Parent(ctx)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	fmt.Println("connected")
	var held []*share.Received
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		switch s.Text() {
		case "receive":
			r, err := p.Receive(ctx)
			if err != nil {
				fmt.Println(err)
				continue
			}
			held = append(held, r)
			data, _ := r.Tensor.UnsafeBytes()
			// Bytes that were sent inside the message belong to this process.
			fmt.Printf("%s: %d bytes, first %d, last %d, inline %v\n", r.Label, len(data), data[0], data[len(data)-1], r.Tensor.IsDonatable())
		case "look":
			for _, r := range held {
				data, _ := r.Tensor.UnsafeBytes()
				fmt.Printf("%s: %d to %d\n", r.Label, slices.Min(data), slices.Max(data))
			}
		case "release":
			for _, r := range held {
				if err := r.Tensor.Release(); err != nil {
					t.Error(err)
				}
			}
			held = nil
			fmt.Println("released")
		case "full":
			fmt.Println(setFiles(t, limit, 0))
		case "room":
			fmt.Println(setFiles(t, limit, 1))
		case "spawn":
			g := exec.Command(os.Args[0], "-test.run=^TestFaultChild$")
			g.Env = append(os.Environ(), childPart+"=keeper")
			g.Stderr = os.Stderr
			if socket >= 0 {
				g.ExtraFiles = []*os.File{os.NewFile(uintptr(socket), "socket")}
			}
			if err := g.Start(); err != nil {
				t.Fatal(err)
			}
			fmt.Println(g.Process.Pid)
		}
	}
}

// setFiles sets how many descriptors may be open: as many as are, or as at the
// start.
func setFiles(t *testing.T, limit unix.Rlimit, room uint64) string {
	if room == 0 {
		next, err := unix.Dup(0) // the lowest number that is free
		if err != nil {
			t.Fatal(err)
		}
		_ = unix.Close(next)
		limit.Cur = uint64(next)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if next, err := unix.Dup(0); err == nil {
		_ = unix.Close(next)
		return "room"
	}
	return "full"
}

// announcerChild is an owner that has no descriptor left when it announces an
// arena to a peer that does not read: the arena's would have to wait in the
// queue.
func announcerChild(t *testing.T) {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	o, err := share.NewOwner()
	if err != nil {
		t.Fatal(err)
	}
	x, note := filled(t, o, 100_000, 6), filled(t, nil, 10_000, 1)
	other, deaf := attach(t, o)
	packets := -1 // that fit, without the one that waits
	for ; err == nil; packets++ {
		err = deaf.Offer(within(t), note, share.NoWait())
	}
	if !errors.Is(err, share.ErrNoCredit) {
		t.Fatalf("offers to a peer that does not read: got %v, want ErrNoCredit", err)
	}
	r, p := attach(t, o)
	for range packets - 1 { // full, and nothing waits yet
		if err := p.Offer(within(t), note, share.NoWait()); err != nil {
			t.Fatal(err)
		}
	}
	setFiles(t, limit, 0)
	for range 2 {
		if err := p.Offer(within(t), x); !errors.Is(err, unix.EMFILE) || errors.Is(err, share.ErrClosed) {
			t.Errorf("without descriptors: got %v, want EMFILE and an open connection", err)
		}
	}
	if err := deaf.Offer(within(t), x, share.NoWait()); !errors.Is(err, share.ErrNoCredit) {
		t.Errorf("behind packets that wait: got %v, want ErrNoCredit", err)
	}
	setFiles(t, limit, 1)
	done := make(chan error)
	go func() { done <- p.Offer(within(t), x) }()
	for announced := false; !announced; {
		switch packet, fds := r.receive(); {
		case packet == nil:
			t.Fatal("got the end of file, want ARENA")
		case packet[0] == mArena:
			announced = true
			for _, fd := range fds {
				_ = unix.Close(fd)
			}
			r.send(message(mMapped, 0, 0, packet[8:16]))
		}
	}
	if err := <-done; err != nil {
		t.Errorf("with descriptors again: got %v", err)
	}
	mustRelease(t, x, note)
	r.close()
	other.close()
	closePeer(t, p)
	closePeer(t, deaf)
	fmt.Println("done")
}

// keeperChild keeps its inherited descriptors open until it is killed.
func keeperChild(t *testing.T) {
	forever := make(chan os.Signal, 1)
	signal.Notify(forever, syscall.SIGUSR1)
	<-forever
}

// memoryGroup makes a control group with a limit, or skips.
func memoryGroup(t *testing.T, limit int) (dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("control groups are root's")
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skip("no control groups here")
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		base, file := "", ""
		switch {
		case len(parts) != 3:
			continue
		case parts[1] == "memory":
			base, file = "/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		case parts[0] == "0":
			base, file = "/sys/fs/cgroup", "memory.max"
		}
		dir = fmt.Sprintf("%s%s/share-test-%d", base, strings.TrimSuffix(parts[2], "/"), os.Getpid())
		if base == "" || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			eventually(t, dir+" is removed", func() bool { return os.Remove(dir) == nil || !exists(dir) })
		})
		if os.WriteFile(dir+"/"+file, fmt.Append(nil, limit), 0o644) == nil {
			return dir
		}
	}
	t.Skip("control groups for memory cannot be made here")
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
