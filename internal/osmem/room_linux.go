package osmem

import (
	"bufio"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// room is the amount of memory that a process may still allocate, and what
// limits it.
type room struct {
	bytes int64
	by    string
}

// roomLeft returns how much memory this process may still allocate: the smaller
// of the machine's memory and the rest of the limits of its control groups.
// File cache that a group would reclaim first counts as free. The result may be
// outdated when it is returned. root is the root of the kernel's files.
func roomLeft(root string) (room, error) {
	info, err := readNumbers(filepath.Join(root, "proc/meminfo"))
	if err != nil {
		return room{}, fmt.Errorf("osmem: available memory: %w", err)
	}
	left, ok := info["MemAvailable:"]
	if !ok {
		return room{}, fmt.Errorf("osmem: available memory: got no MemAvailable in /proc/meminfo, want it (Linux 3.14 or newer)")
	}
	least := room{left * 1024, "the memory of the machine (MemAvailable)"}
	groups, err := memoryGroups(root)
	if err != nil {
		return least, nil // a system without control groups
	}
	for _, g := range groups {
		if left, ok := g.left(root); ok && left < least.bytes {
			least = room{left, "the memory limit of cgroup " + g.dir}
		}
	}
	return least, nil
}

// group is a control group that limits the memory of this process.
type group struct {
	dir     string // without root
	version int
}

// left returns the rest of the group's own limit. A missing file means no
// limit: the root of version 2 has none.
func (g group) left(root string) (int64, bool) {
	limitFile, usageFile, cache := "memory.max", "memory.current", []string{"inactive_file"}
	if g.version == 1 {
		// Usage includes the groups below, so the cache must too.
		limitFile, usageFile, cache = "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "inactive_file"}
	}
	limit, err := readNumber(filepath.Join(root, g.dir, limitFile))
	if err != nil || limit > math.MaxInt64/2 { // version 1 writes "none" as a huge number, version 2 as a word
		return 0, false
	}
	usage, err := readNumber(filepath.Join(root, g.dir, usageFile))
	if err != nil {
		return 0, false
	}
	if stat, err := readNumbers(filepath.Join(root, g.dir, "memory.stat")); err == nil {
		for _, name := range cache {
			if n, ok := stat[name]; ok {
				usage -= min(n, usage)
				break
			}
		}
	}
	return max(limit-usage, 0), true
}

// memoryGroups lists the groups of this process and those above them, as far as
// they are visible.
func memoryGroups(root string) ([]group, error) {
	paths, err := groupPaths(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var groups []group
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		m, ok := parseMount(lines.Text())
		if !ok {
			continue
		}
		own, ok := paths[m.version]
		if !ok {
			continue
		}
		top := m.point
		dir := path.Join(top, below(own, m.root))
		for ; ; dir = path.Dir(dir) {
			groups = append(groups, group{dir, m.version})
			if dir == top || len(dir) <= len(top) {
				break
			}
		}
	}
	return groups, lines.Err()
}

// groupPaths returns the path of the group that limits the memory of this
// process, for each version.
func groupPaths(file string) (map[int]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	paths := map[int]string{}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3) // number:controllers:path
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" {
			paths[2] = parts[2]
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == "memory" {
				paths[1] = parts[2]
			}
		}
	}
	return paths, nil
}

// groupMount is a mounted hierarchy of groups that may limit memory.
type groupMount struct {
	version     int
	root, point string
}

// parseMount parses a line of mountinfo: number, parent, device, root, mount
// point, options, tags, "-", type, source, options.
func parseMount(line string) (groupMount, bool) {
	front, back, ok := strings.Cut(line, " - ")
	fields, kind := strings.Fields(front), strings.Fields(back)
	if !ok || len(fields) < 6 || len(kind) < 3 {
		return groupMount{}, false
	}
	m := groupMount{root: unescape(fields[3]), point: unescape(fields[4])}
	switch kind[0] {
	case "cgroup2":
		m.version = 2
	case "cgroup":
		m.version = 1
		for option := range strings.SplitSeq(kind[2], ",") {
			if option == "memory" {
				return m, true
			}
		}
		return groupMount{}, false
	default:
		return groupMount{}, false
	}
	return m, true
}

// unescape decodes the octal numbers that mountinfo writes for blanks and
// backslashes.
func unescape(s string) string {
	for _, c := range [...]struct{ code, char string }{{`\040`, " "}, {`\011`, "\t"}, {`\012`, "\n"}, {`\134`, `\`}} {
		s = strings.ReplaceAll(s, c.code, c.char)
	}
	return s
}

// below returns the path of a group below the mounted one. For a group outside
// of it, which is not visible, it returns the mounted one.
func below(own, mounted string) string {
	if mounted == "/" {
		mounted = ""
	}
	rest, ok := strings.CutPrefix(own, mounted)
	if !ok || rest != "" && rest[0] != '/' || strings.Contains(rest, "/..") {
		return "/"
	}
	return rest
}

func readNumber(file string) (int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// readNumbers reads lines of a name and a number, and ignores other lines.
func readNumbers(file string) (map[string]int64, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) >= 2 {
			if n, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
				numbers[fields[0]] = n
			}
		}
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("%s: got no numbers: %w", file, fs.ErrInvalid)
	}
	return numbers, nil
}
