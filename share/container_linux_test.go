package share

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// A container is, for what sharing needs of the kernel, a process with
// namespaces of its own: processes, network, System V and POSIX memory, mounts,
// host name, control groups. Only the directory of sockets is common.
const ofContainers = syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP

// contained puts a command into a container: it is process 1 there. With users
// it has a user namespace too, in which this user is number inside.
func contained(users bool, inside int) func(*exec.Cmd) {
	return func(cmd *exec.Cmd) {
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: ofContainers}
		if users {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: inside, HostID: os.Getegid(), Size: 1}}
		}
	}
}

// needContainers skips where this user may not make namespaces.
func needContainers(t *testing.T, users bool) {
	t.Helper()
	if !users && os.Geteuid() != 0 {
		t.Skip("namespaces without one of users are for root alone")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	contained(users, 1000)(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("no namespaces can be made here: %v %s", err, out)
	}
}

func TestCommonInContainers(t *testing.T) {
	for _, users := range []bool{false, true} {
		t.Run(fmt.Sprintf("users %v", users), func(t *testing.T) {
			needContainers(t, users)
			memorytest.Check(t)
			dir := commonDir(t)
			key := keyOf("one copy")
			b := mustCommon(t, key, true)
			want := fmt.Sprintf("made=false inode=%s ok=true", inodeOf(b.Bytes()))
			// Both are process 1 of theirs, so one name for a socket would not
			// do.
			first, second := startChild(t, contained(users, 0)), startChild(t, contained(users, 1000))
			for i, c := range []*child{first, second} {
				if got := c.ask(t, "get one copy"); got != want {
					t.Errorf("container %d: got %q, want %q", i, got, want)
				}
			}
			mustFree(t, b)
			if got := first.ask(t, "get from a container"); !strings.HasPrefix(got, "made=true") {
				t.Errorf("got %q, want that it is made", got)
			}
			if got := second.ask(t, "get from a container"); !strings.HasPrefix(got, "made=false") {
				t.Errorf("got %q, want the other container's", got)
			}
			first.kill()
			mustFree(t, mustCommon(t, key, false))
			mustFree(t, mustCommon(t, keyOf("from a container"), false))
			second.kill()
			mustFree(t, mustCommon(t, key, true)) // no process had it any more
			if left, _ := os.ReadDir(dir); len(left) != 0 {
				t.Errorf("got %v left in the folder, want nothing", left)
			}
		})
	}
}
