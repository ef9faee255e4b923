package osmem

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// fakeRoot writes files below a directory that stands for "/".
func fakeRoot(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

const (
	meminfo = "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    500 kB\nHugePages_Total: 0\n"
	mounts2 = "25 30 0:23 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n24 30 0:22 / /proc rw - proc proc rw\n"
	mounts1 = "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n38 31 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
)

func TestRoomLeft(t *testing.T) {
	machine := room{500 << 10, "the memory of the machine (MemAvailable)"}
	for name, c := range map[string]struct {
		files map[string]string
		want  room
	}{
		"no groups": {map[string]string{}, machine},
		"v2, no limit": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/b/memory.current": "7\n",
		}, machine},
		"v2, own limit": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "100000\n", "sys/fs/cgroup/a/b/memory.current": "70000\n",
			"sys/fs/cgroup/a/b/memory.stat": "anon 60000\nfile 10000\ninactive_file 4000\nactive_file 6000\n",
		}, room{34000, "the memory limit of cgroup /sys/fs/cgroup/a/b"}},
		"v2, limit above": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a/b/c\n",
			"sys/fs/cgroup/a/b/c/memory.max": "100000\n", "sys/fs/cgroup/a/b/c/memory.current": "10\n",
			"sys/fs/cgroup/a/memory.max": "50000\n", "sys/fs/cgroup/a/memory.current": "49000\n",
		}, room{1000, "the memory limit of cgroup /sys/fs/cgroup/a"}},
		"v2, limit of the mounted group": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "50000\n", "sys/fs/cgroup/memory.current": "1\n",
		}, room{49999, "the memory limit of cgroup /sys/fs/cgroup"}},
		"v2, full": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "50000\n", "sys/fs/cgroup/a/memory.current": "60000\n",
		}, room{0, "the memory limit of cgroup /sys/fs/cgroup/a"}},
		"v2, more cache than usage": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "50000\n", "sys/fs/cgroup/a/memory.current": "100\n", "sys/fs/cgroup/a/memory.stat": "inactive_file 200\n",
		}, room{50000, "the memory limit of cgroup /sys/fs/cgroup/a"}},
		"v2, a part of the tree is mounted": {map[string]string{
			"proc/self/mountinfo": strings.Replace(mounts2, "0:23 / ", "0:23 /pod/x ", 1), "proc/self/cgroup": "0::/pod/x/in\n",
			"sys/fs/cgroup/in/memory.max": "40000\n", "sys/fs/cgroup/in/memory.current": "0\n",
			"sys/fs/cgroup/memory.max": "60000\n", "sys/fs/cgroup/memory.current": "50000\n",
		}, room{10000, "the memory limit of cgroup /sys/fs/cgroup"}},
		"v2, outside of what is mounted": {map[string]string{
			"proc/self/mountinfo": mounts2, "proc/self/cgroup": "0::/../../other\n",
			"sys/fs/cgroup/memory.max": "60000\n", "sys/fs/cgroup/memory.current": "0\n", "other/memory.max": "1\n", "other/memory.current": "0\n",
		}, room{60000, "the memory limit of cgroup /sys/fs/cgroup"}},
		"v1": {map[string]string{
			"proc/self/mountinfo": mounts1, "proc/self/cgroup": "9:cpu:/x\n4:hugetlb,memory:/a/b\n0::/u\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "5\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": "100000\n", "sys/fs/cgroup/memory/a/memory.usage_in_bytes": "90000\n",
			"sys/fs/cgroup/memory/a/memory.stat":         "inactive_file 1\ntotal_inactive_file 5000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/unified/u/memory.max":         "3\n", "sys/fs/cgroup/unified/u/memory.current": "x\n",
		}, room{15000, "the memory limit of cgroup /sys/fs/cgroup/memory/a"}},
		"a blank in the mount point": {map[string]string{
			"proc/self/mountinfo": strings.Replace(mounts2, "/sys/fs/cgroup", `/my\040groups`, 1), "proc/self/cgroup": "0::/a\n",
			"my groups/a/memory.max": "5\n", "my groups/a/memory.current": "1\n",
		}, room{4, "the memory limit of cgroup /my groups/a"}},
		"garbage": {map[string]string{
			"proc/self/mountinfo": "-\n - cgroup2\nx x x / /sys/fs/cgroup rw - cgroup2\n" + mounts2, "proc/self/cgroup": "\n0:\nx:y\n0::/a\n",
			"sys/fs/cgroup/a/memory.max": "words\n", "sys/fs/cgroup/a/memory.current": "1\n",
		}, machine},
	} {
		c.files["proc/meminfo"] = meminfo
		got, err := roomLeft(fakeRoot(t, c.files))
		if err != nil || got != c.want {
			t.Errorf("%s: got %d bytes by %s (%v), want %d by %s", name, got.bytes, got.by, err, c.want.bytes, c.want.by)
		}
	}
	for name, text := range map[string]string{"empty": "", "without the line": "MemTotal: 1 kB\n"} {
		if _, err := roomLeft(fakeRoot(t, map[string]string{"proc/meminfo": text})); err == nil {
			t.Errorf("meminfo %s: got no error", name)
		}
	}
	if _, err := roomLeft(t.TempDir()); err == nil {
		t.Error("no meminfo: got no error")
	}
}

func TestRoomOfThisMachine(t *testing.T) {
	r, err := roomLeft("/")
	n := r.bytes
	if err != nil || n <= 0 {
		t.Fatalf("got %d bytes (%v), want more than none", n, err)
	}
	info, err := readNumbers("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	if total := info["MemTotal:"] * 1024; n > total {
		t.Errorf("got %d bytes, want at most the machine's %d", n, total)
	}
}

// memoryGroup makes a control group with a limit, or skips.
func memoryGroup(t *testing.T, limit int) (dir string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("control groups are root's; the files of them are tested in any case")
	}
	groups, err := memoryGroups("/")
	if err != nil || len(groups) == 0 {
		t.Skipf("no control groups for memory here (%v)", err)
	}
	for _, g := range groups {
		dir = filepath.Join(g.dir, fmt.Sprintf("osmem-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		file := "memory.max"
		if g.version == 1 {
			file = "memory.limit_in_bytes"
		}
		if err = os.WriteFile(filepath.Join(dir, file), []byte(strconv.Itoa(limit)), 0o644); err == nil {
			break
		}
		_ = os.Remove(dir)
		dir = ""
	}
	if dir == "" {
		t.Skip("control groups for memory cannot be made here")
	}
	t.Cleanup(func() {
		for range 50 { // the kernel keeps a group while its last process is being buried
			if err := os.Remove(dir); err == nil || os.IsNotExist(err) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("%s could not be removed", dir)
	})
	return dir
}

const groupLimit = 96 << 20

// upToGroupLimit moves into the group and takes shared memory until there is
// none, in a process that would be killed if it took one byte more than the
// group has.
func upToGroupLimit(t *testing.T) {
	dir := os.Getenv("OSMEM_GROUP")
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := roomLeft("/")
	fmt.Printf("within %v (%d, %v)\n", r.bytes > groupLimit/2 && r.bytes <= groupLimit, r.bytes, err)
	if _, err := NewShared("more than the limit", 2*groupLimit); err != nil {
		fmt.Printf("refused: %v\n", err)
	}
	total := 0
	for {
		s, err := NewShared("part", 4<<20)
		if err != nil {
			fmt.Printf("last: %v\n", err)
			break
		}
		total += len(s.Bytes()) // held until this process ends
	}
	fmt.Printf("took enough %v (%d)\n", total > groupLimit/2, total)
}

func TestLimitOfAControlGroup(t *testing.T) {
	dir := memoryGroup(t, groupLimit)
	out, err := inChild(t, "up to the group's limit", "OSMEM_GROUP="+dir)
	if err != nil {
		t.Errorf("got %v, %q, want a child that the kernel does not kill", err, out)
	}
	if overhead(4<<20) < 4<<20/512 {
		t.Errorf("got room for %d bytes beside 4 MiB, want at least what page tables take", overhead(4<<20))
	}
	for _, want := range []string{
		"within true", "took enough true", "last: osmem: shared memory of 4194304 bytes: got ",
		fmt.Sprintf("available under the memory limit of cgroup %s, want %d with page tables", dir, 4<<20+overhead(4<<20)),
		"refused: osmem: shared memory of 201326592 bytes: got ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q in it", out, want)
		}
	}
}
