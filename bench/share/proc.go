package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// faults counts how often pages were not there when processes touched them. A
// look makes no objects: the process that looks is one of those that are looked
// at.
type faults struct {
	stats []*os.File
	text  []byte
}

func openFaults(pids []int) (*faults, error) {
	f := &faults{text: make([]byte, 4096)}
	for _, pid := range pids {
		stat, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, errors.Join(err, f.close())
		}
		f.stats = append(f.stats, stat)
	}
	return f, nil
}

// read writes the count of each process since its start.
func (f *faults) read(counts []int64) error {
	for i, stat := range f.stats {
		n, err := stat.ReadAt(f.text, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if counts[i], err = faultsIn(f.text[:n]); err != nil {
			return fmt.Errorf("%s: %w", stat.Name(), err)
		}
	}
	return nil
}

func (f *faults) close() (err error) {
	for _, stat := range f.stats {
		err = errors.Join(err, stat.Close())
	}
	return err
}

// faultsIn adds the minor and the major ones of /proc/PID/stat, the eighth and
// the tenth field behind the name, which stands in parentheses and may hold
// spaces.
func faultsIn(stat []byte) (sum int64, err error) {
	field, n := 0, int64(0)
	for _, c := range stat[bytes.LastIndexByte(stat, ')')+1:] {
		switch {
		case c == ' ':
			if field == 8 || field == 10 {
				sum += n
			}
			field, n = field+1, 0
		case c >= '0' && c <= '9':
			n = n*10 + int64(c-'0')
		}
	}
	if field < 11 {
		return 0, fmt.Errorf("got %d fields, want more", field)
	}
	return sum, nil
}

// mapsOf lists what shared memory processes have mapped, by process and
// address.
func mapsOf(pids []int) (map[string]bool, error) {
	all := map[string]bool{}
	for _, pid := range pids {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(maps), "\n") {
			if place, rest, ok := strings.Cut(line, " "); ok && strings.Contains(rest, "/memfd:") {
				all[fmt.Sprintf("%d %s", pid, place)] = true
			}
		}
	}
	return all, nil
}

// descriptors counts a process's descriptors of sockets and of files of shared
// memory, by the kernel's names for them: no two have one name.
func descriptors(pid int) (open map[string]int, err error) {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return nil, err
	}
	open = map[string]int{}
	for _, link := range links {
		to, err := os.Readlink(link)
		if err == nil && (strings.HasPrefix(to, socketName) || strings.HasPrefix(to, arenaName)) { // else it was closed meanwhile
			open[to]++
		}
	}
	return open, nil
}

const (
	socketName = "socket:"
	arenaName  = "/memfd:tenure"
)

// countOpen counts the descriptors that a process has open now and had not
// before. A difference of two counts would be wrong while the connection of
// another path, which has ended, is still being closed.
func countOpen(who string, pid int, before map[string]int) (shared, error) {
	s := shared{who: who}
	open, err := descriptors(pid)
	for name, n := range open {
		switch {
		case before[name] > 0:
		case strings.HasPrefix(name, socketName):
			s.sockets += n
		default:
			s.arenas += n
		}
	}
	return s, err
}
