package serve

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// httpMessage reads a request from the body of HTTP: JSON, and binary tensors
// behind it.
type httpMessage struct {
	*body
	header string // Inference-Header-Content-Length
	raw    bool   // the body is one tensor
	single bool   // the body is JSON alone
	length int64  // of the JSON in front of binary tensors
}

// head reads the JSON of the request.
func (h *httpMessage) head(ctx context.Context, q *request) error {
	s := q.server
	length, err := oip.HeaderLength(h.header)
	if err != nil {
		return err
	}
	known := h.known
	switch {
	case length == 0:
		h.raw = true
		q.Request = &oip.Request{Binary: true}
		if err := s.ingress.acquire(ctx, q.ingress); err != nil {
			return err
		}
		return q.describe(known)
	case length < 0:
		h.single = true
		length = known
	case length > s.config.MaxBody, known >= 0 && length > known:
		return fmt.Errorf("Inference-Header-Content-Length: got %d, want at most the %d bytes of the body: %w", length, known, oip.ErrMessage)
	}
	q.ingress.bytes, h.length = max(0, length), length
	if err := s.ingress.acquire(ctx, q.ingress); err != nil {
		return err
	}
	var text []byte
	if length < 0 {
		text, err = h.rest(q.ingress, s.config.MaxBody)
	} else {
		text = make([]byte, length)
		err = h.full(text)
	}
	if err != nil {
		return err
	}
	q.Request, err = oip.ParseRequest(text)
	return err
}

// fit compares the bytes of the binary tensors with those of the body, before
// memory is taken for any of them.
func (h *httpMessage) fit(q *request) error {
	if h.raw {
		return nil
	}
	if h.single {
		for _, in := range q.Inputs {
			if in.Size >= 0 {
				return fmt.Errorf("input '%s': got no elements: %w", in.Name, oip.ErrMessage)
			}
		}
		return nil
	}
	left := q.server.config.MaxBody
	if h.known >= 0 {
		left = h.known
	}
	left -= h.length
	for _, in := range q.Inputs {
		if in.Size > left {
			return fmt.Errorf("input '%s': got %d bytes of binary data, want at most the %d that are left of the body: %w", in.Name, in.Size, left, oip.ErrMessage)
		}
		left -= max(0, in.Size)
	}
	if h.known >= 0 && left > 0 {
		return fmt.Errorf("got %d bytes behind the tensors of the request, want none: %w", left, oip.ErrMessage)
	}
	return nil
}

// section returns the bytes of a tensor: nothing stands between them.
func (h *httpMessage) section(in *oip.Input) (int64, error) { return in.Size, nil }

// describe makes the input of a body of n bytes that is one tensor.
func (q *request) describe(n int64) error {
	m := q.model
	if len(m.inputs) != 1 || n < 0 {
		return fmt.Errorf("got a request without JSON, want that for a model of one input, and with a Content-Length: %w", oip.ErrMessage)
	}
	in := oip.Input{Name: m.inputs[0].Name, Type: elementType(m.inputs[0]), Shape: dims(m.inputs[0]), Size: n}
	size, open := int64(1), -1
	for axis, d := range in.Shape {
		switch {
		case d < 0 && axis == 0 && len(in.Shape) > 1 && m.config.MaxBatchSize > 0:
			in.Shape[0] = 1
		case d < 0 && open >= 0:
			return fmt.Errorf("got a request without JSON, want that for an input with one open dimension at most: %w", oip.ErrMessage)
		case d < 0:
			open = axis
		default:
			size *= int64(d)
		}
	}
	if in.Type != dtype.String {
		size *= int64(in.Type.Size())
	}
	if open >= 0 {
		if in.Type == dtype.String || size == 0 || n%size != 0 {
			return fmt.Errorf("got a request without JSON of %d bytes, want a multiple of %d: %w", n, size, oip.ErrMessage)
		}
		in.Shape[open] = int(n / size)
	}
	q.Inputs = []oip.Input{in}
	return nil
}
