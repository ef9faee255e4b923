package ir

// Weights is a table of the bytes of weights. A program and its clones read one
// table, so an implementation looks weights up by name or ID, not by pointer.
type Weights interface {
	// Has reports whether the table has bytes of the weight.
	Has(w *Value) bool

	// Bytes returns the bytes of the weight, little-endian and row-major,
	// aligned for its elements, and false when the table has none. They must
	// not be written, and stay valid as long as the table is in use. A table
	// may have to load them first, so call Has where it is enough.
	Bytes(w *Value) ([]byte, bool)
}

// WeightMap is a Weights table on the Go heap, by name.
type WeightMap map[string][]byte

// Has reports whether bytes are stored under the weight's name.
func (m WeightMap) Has(w *Value) bool {
	_, ok := m[w.Name]
	return ok
}

// Bytes returns the bytes stored under the weight's name.
func (m WeightMap) Bytes(w *Value) ([]byte, bool) {
	b, ok := m[w.Name]
	return b, ok
}

// Known returns the function that [Infer], [AliasesOf] and [Call.Sig] take:
// it returns the weights of the table and nothing else. w may be nil.
func Known(w Weights) func(*Value) ([]byte, bool) {
	return func(v *Value) ([]byte, bool) {
		if w == nil || v == nil || v.Kind != Weight {
			return nil, false
		}
		return w.Bytes(v)
	}
}
