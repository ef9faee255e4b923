package engine

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Resident reads a figure of /proc/self/status, such as VmRSS, in bytes.
func Resident(name string) (int64, error) {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if len(fields) == 3 && fields[0] == name+":" {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			return n << 10, err
		}
	}
	return 0, fmt.Errorf("/proc/self/status has no %s", name)
}
