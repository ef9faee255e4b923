package share_test

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/python/pythontest"
	"github.com/tenure-go/tenure/share"
)

// forker receives a tensor and forks without exec. fork is os.fork, which the
// client notices, or that of the C library, which it does not. The child waits
// until it is killed; after os.fork it first takes part for itself.
const forker = `
import ctypes, os, sys, time
import tenure
def say(*a): print(*a, flush=True)
p = tenure.attach("host", os.environ["DIR"])
got = p.receive(20)
say(got.label, int(got.array.sum()))
pid = {"python": os.fork, "c": ctypes.CDLL(None).fork}[os.environ["FORK"]]()
if pid == 0:
    if os.environ["FORK"] == "python":
        try:
            p.receive(1)
            say("the parent's connection works in a child")
        except tenure.ClosedError:
            pass
        mine = tenure.attach("host", os.environ["DIR"]).get("steady", 20)
        say("child", int(mine.array.sum()))
    while True:
        time.sleep(60)
if os.environ["FORK"] == "c":
    say("child", pid)
say("parent", pid)
p.receive()
`

func (h *host) fork(kind string) (*child, *share.Peer) {
	cmd := exec.Command(pythontest.Interpreter(h.t, "numpy"), "-c", forker)
	cmd.Env = append(pythontest.Env(".."), "DIR="+h.dir, "FORK="+kind)
	c := startCommand(h.t, cmd)
	return c, <-h.accepted
}

// TestForkWithoutExec: the children of a Python consumer neither keep its
// leases nor lose their own, unless they were made behind the client's back:
// then the end of file waits for them, and nothing is reused early.
func TestForkWithoutExec(t *testing.T) {
	pythontest.Interpreter(t, "numpy") // skips before there is a host
	h := newHost(t)
	x := filled(t, h.o, 100_000, 3)
	defer mustRelease(t, x)
	sum := 0
	for _, b := range steady() {
		sum += int(b)
	}

	c, p := h.fork("python")
	if err := p.Offer(within(t), x, share.Label("x")); err != nil {
		t.Fatal(err)
	}
	if got := c.hear(); got != "x 300000" {
		t.Errorf("got %q, want x and the sum of its bytes", got)
	}
	pid := 0
	for range 2 {
		switch got := c.hear(); {
		case strings.HasPrefix(got, "parent "):
			pid = c.pidIn(got)
		case got != fmt.Sprintf("child %d", sum):
			t.Errorf("the forked child: got %q, want the sum %d of a tensor of its own", got, sum)
		}
	}
	own := <-h.accepted
	if n := h.leases(p); n != 1 {
		t.Errorf("after the fork: got %d leases of the parent, want 1", n)
	}
	c.signal(syscall.SIGKILL)
	eventually(t, "the parent's row is dropped, although its child lives", func() bool { return h.leases(p) == 0 })
	if n := h.leases(own); n != 1 {
		t.Errorf("after the parent's end: got %d leases of the child, want 1", n)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "the child's row is dropped", func() bool { return h.leases(own) == 0 })

	c, p = h.fork("c")
	if err := p.Offer(within(t), x, share.Label("y")); err != nil {
		t.Fatal(err)
	}
	if got := c.hear(); got != "y 300000" {
		t.Errorf("got %q, want y and the sum of its bytes", got)
	}
	pid = c.pidIn(c.hear())
	c.hear()
	c.signal(syscall.SIGKILL)
	eventually(t, "the parent is gone", func() bool { return dead(c.cmd.Process.Pid) })
	h.serves()
	if n := h.leases(p); n != 1 {
		t.Errorf("while a child has the socket: got %d leases, want 1", n)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	eventually(t, "the row is dropped with the last socket", func() bool { return h.leases(p) == 0 })
}

// pidIn returns the number behind the first word. That process is killed in the
// end.
func (c *child) pidIn(line string) int {
	c.t.Helper()
	_, number, _ := strings.Cut(line, " ")
	pid, err := strconv.Atoi(number)
	if err != nil || pid <= 1 {
		c.t.Fatalf("got %q, want the number of a process", line)
	}
	c.t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	return pid
}

// dead reports whether a process has ended, buried or not.
func dead(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(text), ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}
