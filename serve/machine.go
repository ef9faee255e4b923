package serve

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// machineBudget is how many bytes models and requests may take where nobody
// says it: the memory that the container, or else the machine, permits, less
// what the process takes itself. Where neither is known there is no bound.
func machineBudget() int64 {
	limit := machineMemory("/")
	if limit == math.MaxInt64 {
		return math.MaxInt64 / 4
	}
	return limit - max(limit/8, min(64<<20, limit/2))
}

// machineMemory reads the smallest limit of the control groups that the process
// is in, and of the machine, from the files below root. It is math.MaxInt64
// where there are none.
func machineMemory(root string) int64 {
	limit := int64(math.MaxInt64)
	if info, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		for line := range strings.Lines(string(info)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "MemTotal:" {
				if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					limit = n << 10
				}
			}
		}
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit
	}
	for line := range strings.Lines(string(groups)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		var dir, file string
		switch {
		case f[0] == "0" && f[1] == "":
			dir, file = "sys/fs/cgroup", "memory.max"
		case strings.Contains(","+f[1]+",", ",memory,"):
			dir, file = "sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// In a container the path may be that of the host: the group is then
		// the root of what is mounted.
		for path := filepath.Join("/", f[2]); ; path = filepath.Dir(path) {
			text, err := os.ReadFile(filepath.Join(root, dir, path, file))
			if n, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil && n > 0 {
				limit = min(limit, n)
			}
			if path == "/" {
				break
			}
		}
	}
	return limit
}
