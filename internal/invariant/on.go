//go:build invariants

package invariant

import (
	"fmt"
	"runtime"
	"strings"
)

// Enabled tells whether the program was built with the tag `invariants`.
const Enabled = true

const siteDepth = 12

// Site is the call stack of an allocation. The zero Site is empty.
type Site struct {
	pcs [siteDepth]uintptr
	n   int
}

// Here returns the call stack, leaving out Here itself and skip more frames.
func Here(skip int) Site {
	var s Site
	s.n = runtime.Callers(skip+2, s.pcs[:])
	return s
}

// String lists the frames, innermost first, as "function (file:line)", one per
// line, without those of the runtime and of package testing.
func (s Site) String() string {
	if s.n == 0 {
		return ""
	}
	var sb strings.Builder
	frames := runtime.CallersFrames(s.pcs[:s.n])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "testing.") {
			if sb.Len() > 0 {
				sb.WriteByte('\n')
			}
			fmt.Fprintf(&sb, "%s (%s:%d)", f.Function, f.File, f.Line)
		}
		if !more {
			return sb.String()
		}
	}
}
