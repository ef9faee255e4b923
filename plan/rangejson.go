package plan

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// WriteJSON writes the promise as JSON.
func (r *Range) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(r)
}

// ReadRangeJSON reads what [Range.WriteJSON] writes, and validates it: unknown
// fields, bounds below 0 and figures without sizes are refused. Fields that
// are not there are 0. The error is an ErrDocument, or that of r.
func ReadRangeJSON(r io.Reader) (*Range, error) {
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	var p *Range
	if err := d.Decode(&p); err != nil {
		return nil, docErr("document: json at byte %d: %w", d.InputOffset(), err)
	}
	if p == nil {
		return nil, docErr("document: got null, want an object")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, docErr("end: got more text at byte %d, want one document", d.InputOffset())
	}
	if err := p.validate(); err != nil {
		return nil, err
	}
	return p, nil
}

func (r *Range) validate() error {
	for i, d := range r.Dims {
		if d.Name == "" || slices.ContainsFunc(r.Dims[:i], func(e RangeDim) bool { return e.Name == d.Name }) {
			return docErr("dims[%d].name: got %q, want a name of its own", i, d.Name)
		}
		if d.Most < 0 {
			return docErr("dims[%d].most: got %d, want 0 or more", i, d.Most)
		}
		if d.Sizes != nil && (len(d.Sizes) == 0 || d.Sizes[0] < 0 || !slices.IsSorted(d.Sizes) || d.Sizes[len(d.Sizes)-1] != d.Most) {
			return docErr("dims[%d].sizes: got %v, want sizes in rising order, the last of them %d", i, d.Sizes, d.Most)
		}
	}
	if r.Threads < 1 || r.MaxConcurrent < 1 {
		return docErr("threads, max_concurrent: got %d and %d, want 1 or more", r.Threads, r.MaxConcurrent)
	}
	for _, f := range []struct {
		name string
		RangeFigure
	}{{"arena", r.Arena}, {"scratch", r.Scratch}, {"io", r.IO}, {"worst", r.Worst}} {
		if f.Bytes < 0 || f.Bytes > MaxBytes {
			return docErr("%s.bytes: got %d, want 0 to %d", f.name, f.Bytes, int64(MaxBytes))
		}
		if len(f.At) != len(r.Dims) {
			return docErr("%s.at: got %d sizes, want one for each of the %d dimensions", f.name, len(f.At), len(r.Dims))
		}
	}
	if r.WeightBytes < 0 || r.WeightBytes > MaxBytes {
		return docErr("weight_bytes: got %d, want 0 to %d", r.WeightBytes, int64(MaxBytes))
	}
	return nil
}
