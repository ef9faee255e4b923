package grpc

import (
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"math"
)

// Encodings are those in which messages may be compressed, for the header
// Grpc-Accept-Encoding.
const Encodings = "identity,gzip,deflate"

// HeaderSize is the bytes in front of each message.
const HeaderSize = 5

// Header is what stands in front of a message of so many bytes.
func Header(length int) (h [HeaderSize]byte, err error) {
	if uint64(length) > math.MaxUint32 {
		return h, Errorf(ResourceExhausted, "got an answer of %d bytes, want at most %d", length, uint32(math.MaxUint32))
	}
	binary.BigEndian.PutUint32(h[1:], uint32(length))
	return h, nil
}

// Frames reads messages. As an io.Reader it has the bytes of the message that
// Next has found.
type Frames struct {
	r        io.Reader
	encoding string
	left     int64     // bytes of the message that were not read, as they were sent
	content  io.Reader // of a compressed message; nil for others
	room     int64     // bytes that may still come of it when it is decompressed
	broken   bool
}

// Broken reports whether nobody can tell where the next message begins.
func (f *Frames) Broken() bool { return f.broken }

// NewFrames reads messages from the body of a request with that Grpc-Encoding.
func NewFrames(r io.Reader, encoding string) (*Frames, error) {
	switch encoding {
	case "", "identity", "gzip", "deflate":
		return &Frames{r: r, encoding: encoding}, nil
	}
	return nil, Errorf(Unimplemented, "grpc-encoding: got %q, want one of %s", encoding, Encodings)
}

// errTruncated is the error of a message whose end does not come.
var errTruncated = &Error{InvalidArgument, "got the end of the stream in the middle of a message"}

// Next moves to the next message and returns how many bytes it has, -1 if it is
// compressed, and io.EOF behind the last one. Messages have most bytes at most,
// also when they are decompressed. What was not read of the message before is
// skipped.
func (f *Frames) Next(most int64) (n int64, err error) {
	defer func() { f.broken = f.broken || err != nil }()
	if err := f.Skip(); err != nil {
		return 0, err
	}
	var h [HeaderSize]byte
	if _, err := io.ReadFull(f.r, h[:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = errTruncated
		}
		return 0, err
	}
	length := int64(binary.BigEndian.Uint32(h[1:]))
	if length > most {
		return 0, Errorf(ResourceExhausted, "got a message of %d bytes, larger than the server allows, %d", length, most)
	}
	f.left, f.room = length, most
	switch {
	case h[0] == 0:
		return length, nil
	case h[0] > 1:
		return 0, Errorf(Internal, "got a message that begins with %d, want 0 or 1", h[0])
	case f.encoding == "gzip":
		content, err := gzip.NewReader(sent{f})
		if err != nil {
			return 0, compressed(err)
		}
		f.content = content
	case f.encoding == "deflate":
		content, err := zlib.NewReader(sent{f})
		if err != nil {
			return 0, compressed(err)
		}
		f.content = content
	default:
		return 0, Errorf(Internal, "got a compressed message without grpc-encoding")
	}
	return -1, nil
}

// Skip reads what was not read of the message.
func (f *Frames) Skip() error {
	f.content = nil
	_, err := io.Copy(io.Discard, sent{f})
	f.broken = f.broken || err != nil
	return err
}

// Read reads bytes of the message, and returns io.EOF at its end.
func (f *Frames) Read(p []byte) (int, error) {
	if f.content == nil {
		return sent{f}.Read(p)
	}
	if int64(len(p)) > f.room+1 {
		p = p[:f.room+1]
	}
	n, err := f.content.Read(p)
	if f.room -= int64(n); f.room < 0 {
		return 0, Errorf(ResourceExhausted, "got a message that is larger than the server allows when it is decompressed")
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = compressed(err)
	}
	return n, err
}

// compressed is the error of what no decompressor reads; that of a client that
// stopped stays.
func compressed(err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || errors.Is(err, zlib.ErrHeader) || errors.Is(err, zlib.ErrChecksum) || errors.Is(err, zlib.ErrDictionary) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || isCorrupt(err) {
		return Errorf(InvalidArgument, "got a compressed message that is not whole: %v", err)
	}
	return err
}

// sent is the bytes of a message as they were sent.
type sent struct{ f *Frames }

func (s sent) Read(p []byte) (int, error) {
	f := s.f
	if f.left == 0 {
		return 0, io.EOF
	}
	n, err := f.r.Read(p[:min(int64(len(p)), f.left)])
	if f.left -= int64(n); f.left > 0 && errors.Is(err, io.EOF) {
		return n, errTruncated
	}
	if errors.Is(err, io.EOF) {
		err = nil // the next read says it
	}
	return n, err
}

func isCorrupt(err error) bool {
	_, ok := errors.AsType[flate.CorruptInputError](err)
	return ok
}
