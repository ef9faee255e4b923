package contest

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// moment is a reading of how long the processors have been busy, in ticks of
// 10 ms.
type moment struct {
	when  time.Time
	ticks int64
}

// busy reads the machine's busy time. Where the system does not say it, it is
// zero, as is everything derived from it.
func busy() moment {
	m := moment{when: time.Now()}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	for i, word := range strings.Fields(string(line)) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err == nil && (i == 1 || i == 2 || i == 3 || i == 6 || i == 7 || i == 8) { // user, nice, system, irq, softirq, steal
			m.ticks += n
		}
	}
	return m
}

// others says how many processors other processes kept busy since the moment,
// on average. The processes named, which started after it, are ours.
func (m moment) others(ours ...int) float64 {
	now := busy()
	spent := now.ticks - m.ticks
	for _, pid := range ours {
		spent -= ticksOf(pid)
	}
	seconds := now.when.Sub(m.when).Seconds()
	return min(max(float64(spent)/100/seconds, 0), float64(runtime.NumCPU()))
}

// ticksOf is the processor time of a process.
func ticksOf(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is a name in parentheses and may hold spaces.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return user + system
}
