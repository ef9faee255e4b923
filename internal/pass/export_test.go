package pass

// Ignore makes the structure admit sizes for which a guard of this kind has
// another answer.
func (s *Structure) Ignore(kind string) {
	s.ignored = func(k string) bool { return k == kind }
}
