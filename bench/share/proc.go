package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// faultsOf counts for each process how often a page was not there when it touched it.
func faultsOf(pids []int) (all []int64, err error) {
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return nil, err
		}
		// The second field is a name in parentheses and may hold spaces.
		_, rest, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(rest)
		if len(fields) < 10 {
			return nil, fmt.Errorf("/proc/%d/stat: got %d fields, want more", pid, len(fields))
		}
		n := int64(0)
		for _, i := range []int{7, 9} { // minor and major
			faults, err := strconv.ParseInt(fields[i], 10, 64)
			if err != nil {
				return nil, fmt.Errorf("/proc/%d/stat: %w", pid, err)
			}
			n += faults
		}
		all = append(all, n)
	}
	return all, nil
}

// mapsOf lists what shared memory processes have mapped, by process and address.
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

// descriptors counts a process's sockets and its files of shared memory.
func descriptors(pid int) (sockets, arenas int, err error) {
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return 0, 0, err
	}
	for _, link := range links {
		to, err := os.Readlink(link)
		switch {
		case err != nil: // it was closed meanwhile
		case strings.HasPrefix(to, "socket:"):
			sockets++
		case strings.HasPrefix(to, "/memfd:tenure"):
			arenas++
		}
	}
	return sockets, arenas, nil
}
