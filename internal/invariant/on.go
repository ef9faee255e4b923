//go:build invariants

package invariant

import "runtime"

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

// String lists the frames, innermost first, as "function (file:line)", one per line.
func (s Site) String() string { return formatFrames(s.pcs[:s.n]) }
