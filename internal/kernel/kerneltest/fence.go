package kerneltest

import "unsafe"

// WithScratch calls f with n floats of scratch. They end where, on Unix,
// nothing can be read: a kernel that reads behind its scratch ends the program.
func (s *Space) WithScratch(n int, f func(scratch []float32)) {
	s.t.Helper()
	pages := fencedPages(s.t, 4*max(1, n))
	defer freePages(s.t, pages)
	from := len(pages) - 4*n
	before := pages[max(0, from-guardBytes):from]
	for i := range before {
		before[i] = canary
	}
	var scratch []float32
	if n > 0 {
		scratch = unsafe.Slice((*float32)(unsafe.Pointer(&pages[from])), n)[:n:n]
	}
	f(scratch)
	for i, b := range before {
		if b != canary {
			s.t.Fatalf("scratch: byte %d before it was overwritten", len(before)-i)
		}
	}
}
