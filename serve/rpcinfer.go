package serve

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
	"github.com/tenure-go/tenure/serve/internal/protobuf"
)

// peeked is how much of a message is looked at before memory is promised to it.
const peeked = 4 << 10

// readers are those of messages, which are kept.
var readers = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, peeked) }}

// wireMessage reads a ModelInferRequest. Tensors are read into their places if
// their inputs stand in front of them, as all writers of messages have it.
type wireMessage struct {
	*bufio.Reader
	known   int64    // bytes of the message, -1 if it is compressed
	left    int64    // bytes that may still come
	pending int64    // bytes of the tensor whose beginning was read, -1 without one
	early   [][]byte // tensors in front of the inputs
	first   []byte   // the tensor of early that is read; the others follow
}

// openMessage begins to read a message of known bytes from a call. close ends
// that.
func (c *call) openMessage(known int64) *wireMessage {
	m := &wireMessage{Reader: readers.Get().(*bufio.Reader), known: known, left: known, pending: -1}
	m.Reset(c.frames)
	if known < 0 {
		m.left = c.server.config.MaxBody
	}
	return m
}

func (m *wireMessage) close() {
	m.Reset(nil)
	readers.Put(m.Reader)
}

// readWire reads what stands in front of the tensors, and finds the model.
func (q *request) readWire(ctx context.Context, m *wireMessage) error {
	wait, cancel := q.server.patient(ctx)
	defer cancel()
	q.message = m
	err := m.readHead(wait, q)
	if err == nil {
		err = m.settle(q)
	}
	if err != nil {
		q.server.rejected.count(err)
		return err
	}
	q.model, err = q.server.useToRun(ctx, q.Model, q.Version)
	q.server.rejected.count(err)
	return err
}

// head has been read before, because it has the name of the model.
func (m *wireMessage) head(context.Context, *request) error { return nil }

// readHead reads fields up to the first tensor.
func (m *wireMessage) readHead(ctx context.Context, q *request) error {
	q.Request = &oip.Request{Binary: true}
	room, err := m.headSize()
	if err != nil {
		return err
	}
	q.ingress.bytes = room
	if err := q.server.ingress.acquire(ctx, q.ingress); err != nil {
		return err
	}
	for {
		number, size, err := m.field()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if number == oip.FieldRaw && len(q.Inputs) > 0 {
			m.pending = size
			return nil
		}
		if room -= size + page/64; room < 0 {
			if !q.ingress.tryGrow(-room) {
				return fmt.Errorf("the head of the request does not fit into memory: %w", ErrBusy)
			}
			room = 0
		}
		data := make([]byte, size)
		if err := m.read(data); err != nil {
			return err
		}
		if number == oip.FieldRaw {
			m.early = append(m.early, data)
		} else if err := q.SetField(number, data); err != nil {
			return err
		}
	}
}

// headSize returns how many bytes the head takes, or, where it is longer than
// what is looked at, what is to be promised for its beginning.
func (m *wireMessage) headSize() (int64, error) {
	n := peeked
	if m.known >= 0 {
		n = int(min(m.known, peeked))
	}
	data, err := m.Peek(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, m.fault(err)
	}
	all := data
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag>>3 == oip.FieldRaw {
			break
		}
		data = data[n:]
		size, n := binary.Uvarint(data)
		if n <= 0 || tag&7 != protobuf.Bytes {
			break
		}
		if size > uint64(len(data)-n) {
			if size > uint64(m.left) {
				break // it is wrong, as will be found when it is read
			}
			if m.known >= 0 {
				return m.known, nil // elements are in the head
			}
			return int64(size) + peeked, nil
		}
		data = data[n+int(size):]
	}
	return int64(len(all) - len(data)), nil
}

// field moves to the next field that a request has, and returns its bytes.
// Other fields are skipped. At the end of the message the error is io.EOF.
func (m *wireMessage) field() (number int, size int64, err error) {
	for {
		before := m.left
		tag, err := m.uvarint()
		if errors.Is(err, io.EOF) && m.left == before {
			return 0, 0, io.EOF
		}
		if err != nil {
			return 0, 0, m.fault(err)
		}
		number := int(min(tag>>3, 1<<30))
		var skip uint64
		switch tag & 7 {
		case protobuf.Varint:
			_, err = m.uvarint()
		case protobuf.Fixed64:
			skip = 8
		case protobuf.Fixed32:
			skip = 4
		case protobuf.Bytes:
			skip, err = m.uvarint()
		default:
			err = fmt.Errorf("got the wire type %d, want one of protobuf: %w", tag&7, oip.ErrMessage)
		}
		switch {
		case err != nil:
			return 0, 0, m.fault(err)
		case number == 0:
			return 0, 0, fmt.Errorf("got the field number 0: %w", oip.ErrMessage)
		case skip > uint64(m.left):
			return 0, 0, fmt.Errorf("field %d: got a length of %d bytes, want at most the %d that are left of the message: %w", number, skip, m.left, oip.ErrMessage)
		case tag&7 == protobuf.Bytes && (oip.IsHead(number) || number == oip.FieldRaw):
			return number, int64(skip), nil
		}
		if err := m.skip(int64(skip)); err != nil {
			return 0, 0, err
		}
	}
}

func (m *wireMessage) uvarint() (v uint64, err error) {
	for shift := 0; shift < 70; shift += 7 {
		b, err := m.ReadByte()
		if err != nil {
			return 0, err
		}
		m.left--
		if shift == 63 && b > 1 {
			break
		}
		if v |= uint64(b&0x7f) << shift; b < 0x80 {
			return v, nil
		}
	}
	return 0, fmt.Errorf("got a number of more than 64 bits: %w", oip.ErrMessage)
}

func (m *wireMessage) skip(n int64) error {
	m.left -= n
	_, err := io.CopyN(io.Discard, m.Reader, n)
	return m.fault(err)
}

func (m *wireMessage) read(dst []byte) error {
	m.left -= int64(len(dst))
	_, err := io.ReadFull(m.Reader, dst)
	return m.fault(err)
}

// fault says of an end that it comes too early.
func (m *wireMessage) fault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("got the end of the message in the middle of a field: %w", oip.ErrMessage)
	}
	return err
}

// settle says of each input where its elements are.
func (m *wireMessage) settle(q *request) error {
	var sizes []int64 // of the first tensors
	for _, data := range m.early {
		sizes = append(sizes, int64(len(data)))
	}
	if m.pending >= 0 {
		sizes = append(sizes, m.pending)
	}
	raw := len(sizes) > 0
	for i := range q.Inputs {
		in := &q.Inputs[i]
		n, err := oip.Elements(in.Shape)
		switch {
		case in.Region != nil:
		case raw && in.Contents != nil:
			return fmt.Errorf("contents field must not be specified when using raw_input_contents for '%s' for model '%s': %w", in.Name, q.Model, oip.ErrMessage)
		case len(sizes) > 0:
			in.Size, sizes = sizes[0], sizes[1:]
		case raw && in.Type == dtype.String:
			in.Size = 0 // until it is read
		case raw && err == nil:
			in.Size = int64(n) * int64(in.Type.Size())
		case in.Contents == nil && n == 0 && err == nil:
			in.Contents = []byte{} // nobody writes a message without elements
		}
	}
	return nil
}

// fit compares the bytes of the tensors with those of the message.
func (m *wireMessage) fit(q *request) error {
	left := m.left
	for _, data := range m.early {
		left += int64(len(data))
	}
	for _, in := range q.Inputs {
		if in.Size > left {
			return fmt.Errorf("input '%s': got at most %d bytes of raw_input_contents, want the %d of its shape: %w", in.Name, left, in.Size, oip.ErrMessage)
		}
		left -= max(0, in.Size)
	}
	return nil
}

// section moves to the elements of an input.
func (m *wireMessage) section(in *oip.Input) (int64, error) {
	if len(m.early) > 0 {
		m.first, m.early = m.early[0], m.early[1:]
		return int64(len(m.first)), nil
	}
	m.first = nil
	if size := m.pending; size >= 0 {
		m.pending = -1
		return size, nil
	}
	number, size, err := m.field()
	switch {
	case errors.Is(err, io.EOF):
		return 0, fmt.Errorf("got no raw_input_contents, want an entry for each input that is not in shared memory: %w", oip.ErrMessage)
	case err == nil && number != oip.FieldRaw:
		err = errLateHead(number)
	}
	return size, err
}

// errLateHead is the error of a message that some writers could write, and none
// that is known does.
func errLateHead(number int) error {
	return fmt.Errorf("got field %d behind raw_input_contents, want it in front of them: %w", number, oip.ErrMessage)
}

// full reads elements of the input.
func (m *wireMessage) full(dst []byte) error {
	if m.first != nil {
		m.first = m.first[copy(dst, m.first):]
		return nil
	}
	return m.read(dst)
}

// end wants the end of the message.
func (m *wireMessage) end() error {
	if len(m.early) > 0 || m.pending >= 0 {
		return errTooMany
	}
	number, _, err := m.field()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil && number == oip.FieldRaw:
		return errTooMany
	case err == nil:
		return errLateHead(number)
	}
	return err
}

var errTooMany = fmt.Errorf("got more raw_input_contents than inputs that are not in shared memory: %w", oip.ErrMessage)

// infer reads the next message of a call, and begins the request in it.
func (c *call) infer(q *request, stream bool) error {
	known, err := c.next(c.server.config.MaxBody, stream)
	if err != nil {
		return err
	}
	m := c.openMessage(known)
	defer m.close()
	err = q.readWire(c.ctx, m)
	if err == nil {
		err = q.begin(c.ctx)
	}
	q.message = nil
	return err
}

// modelInfer answers one request.
func (s *Server) modelInfer(c *call) error {
	q := s.newRequest()
	err := c.infer(q, false)
	if err == nil {
		err = q.finish(func(head *oip.Answer) error { return c.sendAnswer(head, false) })
	}
	q.release(err)
	return err
}

// sendAnswer writes an answer: in a stream as one of its messages.
func (c *call) sendAnswer(head *oip.Answer, stream bool) error {
	var flags []string
	if stream {
		flags = []string{"triton_final_response"}
	}
	text := head.AppendMessage(nil, flags...)
	parts := make([][]byte, 1, 1+2*len(head.Outputs))
	length := len(text)
	for _, r := range head.Outputs {
		tag := oip.AppendRawTag(nil, len(r.Data)) // without bytes for one in shared memory
		parts = append(parts, tag, r.Data)
		length += len(tag) + len(r.Data)
	}
	if parts[0] = text; stream {
		front := binary.AppendUvarint(protobuf.AppendTag(nil, 2, protobuf.Bytes), uint64(length))
		return c.flush(c.send(slices.Insert(parts, 0, front)...))
	}
	return c.send(parts...)
}

// mostAtATime is how many requests of a stream are under way together.
const mostAtATime = 64

// modelStreamInfer answers the requests of a stream, in their order. The next
// ones are read while the first are computed, so that they may run together. A
// request that fails does not end the stream.
func (s *Server) modelStreamInfer(c *call) error {
	defer context.AfterFunc(s.refusing, c.endStream)()
	var under sync.WaitGroup
	defer under.Wait()
	places := make(chan struct{}, mostAtATime)
	before := make(chan struct{})
	close(before)
	for {
		q := s.newRequest()
		err := c.infer(q, true)
		if c.ends(err) {
			q.release(err)
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		turn, mine := before, make(chan struct{})
		before = mine
		places <- struct{}{}
		under.Go(func() {
			defer func() { close(mine); <-places }()
			if err == nil {
				err = q.finish(func(head *oip.Answer) error {
					<-turn
					return c.sendAnswer(head, true)
				})
			}
			<-turn
			if err != nil && !errors.Is(err, errStopped) {
				c.sendFailure(q, err)
			}
			q.release(err)
		})
	}
}

// ends reports whether an error ends a stream: there are no further messages,
// or nobody could tell where the next one begins.
func (c *call) ends(err error) bool {
	return errors.Is(err, io.EOF) || c.in.failed != nil || c.ctx.Err() != nil || c.frames.Broken()
}

// sendFailure tells the client of a stream that a request failed.
func (c *call) sendFailure(q *request, err error) {
	_, text := c.server.codeOf(err, c.r.URL.Path)
	message := protobuf.AppendBytes(nil, 1, text)
	if q.Request != nil {
		id := protobuf.AppendString(nil, 3, q.ID)
		message = protobuf.AppendBytes(message, 2, id)
	}
	_ = c.flush(c.send(message))
}
