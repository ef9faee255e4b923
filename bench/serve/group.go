package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// group is a control group of version 2 that bounds the memory of a server. A
// nil group is none.
type group struct{ dir string }

// groupRoot is where the system mounts control groups.
const groupRoot = "/sys/fs/cgroup"

// newGroup makes a group, if the system lets this process do so.
func newGroup(limit int64) (*group, error) {
	controllers, err := os.ReadFile(filepath.Join(groupRoot, "cgroup.subtree_control"))
	if err != nil {
		return nil, fmt.Errorf("no control groups of version 2: %w", err)
	}
	if !slices.Contains(strings.Fields(string(controllers)), "memory") {
		return nil, errors.New("control groups do not count memory here")
	}
	dir, err := os.MkdirTemp(groupRoot, "tenure-bench")
	if err != nil {
		return nil, err
	}
	g := &group{dir}
	for file, value := range map[string]int64{"memory.max": limit, "memory.swap.max": 0} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(strconv.FormatInt(value, 10)), 0); err != nil && file == "memory.max" {
			g.remove()
			return nil, err
		}
	}
	return g, nil
}

// remove removes a group whose processes have ended.
func (g *group) remove() {
	if g != nil {
		_ = os.Remove(g.dir)
	}
}

// figures are the most bytes that the group had, and how many of its processes
// were killed for want of memory.
func (g *group) figures() (peak, kills int64, err error) {
	if g == nil {
		return 0, 0, errors.ErrUnsupported
	}
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.peak"))
	if err != nil {
		return 0, 0, err
	}
	if peak, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err != nil {
		return 0, 0, err
	}
	events, err := os.ReadFile(filepath.Join(g.dir, "memory.events"))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(events)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "oom_kill" {
			kills, err = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return peak, kills, err
}

// tenureIn starts tenure serve on processor 0, in a group if there is one.
func (b *bench) tenureIn(g *group, args ...string) (*server, error) {
	cmd := exec.Command(b.command, append([]string{"serve", "--address", "127.0.0.1:0", "--pprof"}, args...)...)
	if g != nil {
		dir, err := os.Open(g.dir)
		if err != nil {
			return nil, err
		}
		defer dir.Close()
		cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	}
	return start(cmd, 0)
}
