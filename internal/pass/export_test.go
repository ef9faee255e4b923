package pass

import "slices"

// Ignore makes the structure admit sizes for which a guard of these kinds has
// another answer.
func (s *Structure) Ignore(kinds []string) {
	s.ignored = func(kind string) bool { return slices.Contains(kinds, kind) }
}
