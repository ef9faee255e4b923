//go:build invariants && unix

package share

import (
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// crashStep is the step of docs/share.md at which this process kills itself,
// and crashLeft the number of passes before that.
var (
	crashStep = -1
	crashLeft atomic.Int64
)

func init() {
	step, times, _ := strings.Cut(os.Getenv("TENURE_CRASH_AT"), ":")
	if n, err := strconv.Atoi(step); err == nil {
		crashStep = n
	}
	crashLeft.Store(1)
	if n, err := strconv.ParseInt(times, 10, 64); err == nil {
		crashLeft.Store(n)
	}
}

// mutated reports whether a test has broken the protocol on purpose, to show
// that other tests notice: with "early reuse" leases do not keep bytes, with
// "no reclaim" death does not end leases, with "no event" consumers do not wait
// for the work of the owner's device, with "early end" another library gets
// memory back that peers have open.
func mutated(how string) bool { return os.Getenv("TENURE_MUTATION") == how }

func crashAt(step int) {
	if step == crashStep && crashLeft.Add(-1) == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}
