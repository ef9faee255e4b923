package serve

import (
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/tenure-go/tenure/serve/internal/oip"
)

// part is how much of a body a client must send, or take, within Config.Stall.
const part = 64 << 10

// body reads the body of a request, and gives up on a client that stops.
type body struct {
	r     io.Reader
	raw   io.Reader // r before it is decompressed
	conn  *http.ResponseController
	stall time.Duration
	known int64 // bytes of the body, -1 if it is compressed or comes in chunks
}

// openBody checks what the head of a request says of its body.
func (s *Server) openBody(w http.ResponseWriter, r *http.Request) (*body, error) {
	if r.ContentLength > s.config.MaxBody {
		return nil, fmt.Errorf("got a body of %d bytes, %w, %d", r.ContentLength, ErrTooLarge, s.config.MaxBody)
	}
	raw := http.MaxBytesReader(w, r.Body, s.config.MaxBody)
	b := &body{r: raw, raw: raw, conn: http.NewResponseController(w), stall: s.config.Stall, known: r.ContentLength}
	var err error
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
		return b, nil
	case "gzip":
		b.wait()
		b.r, err = gzip.NewReader(b.r)
	case "deflate":
		b.wait()
		b.r, err = zlib.NewReader(b.r)
	default:
		return nil, fmt.Errorf("got the Content-Encoding %q, want gzip or deflate: %w", encoding, oip.ErrMessage)
	}
	b.known = -1
	return b, b.fault(err)
}

// wait gives the client time for the next part. Where there is no connection,
// as in tests, there is nothing to wait for.
func (b *body) wait() { _ = b.conn.SetReadDeadline(time.Now().Add(b.stall)) }

// fault tells a client that stopped from one that sent something wrong.
func (b *body) fault(err error) error {
	var tooLong *http.MaxBytesError
	switch {
	case err == nil, errors.As(err, &tooLong):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("got the end of the body, want more bytes: %w", oip.ErrMessage)
	}
	return fmt.Errorf("reading the body: %w: %w", err, oip.ErrMessage)
}

// full reads as many bytes as dst has.
func (b *body) full(dst []byte) error {
	for len(dst) > 0 {
		b.wait()
		n, err := io.ReadFull(b.r, dst[:min(len(dst), part)])
		if err != nil {
			return b.fault(err)
		}
		dst = dst[n:]
	}
	return nil
}

// rest reads what is left, which takes bytes of c as it comes; no more than
// most.
func (b *body) rest(c *claim, most int64) ([]byte, error) {
	var text []byte
	for {
		if len(text) == cap(text) {
			more := max(4096, len(text))
			if int64(len(text)+more) > most+1 {
				more = int(most) + 1 - len(text)
			}
			if more <= 0 {
				return nil, fmt.Errorf("got a body of more than %d bytes: %w", most, ErrTooLarge)
			}
			if !c.tryGrow(int64(more)) {
				return nil, fmt.Errorf("the text of the request does not fit into memory: %w", ErrBusy)
			}
			text = append(make([]byte, 0, len(text)+more), text...)
		}
		b.wait()
		n, err := b.r.Read(text[len(text):min(cap(text), len(text)+part)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, nil
		}
		if err != nil {
			return nil, b.fault(err)
		}
	}
}

// end wants the end of the body. From here on the connection is watched for a
// client that goes.
func (b *body) end() error {
	var one [1]byte
	for {
		b.wait()
		n, err := b.r.Read(one[:])
		switch {
		case n > 0:
			return fmt.Errorf("got more bytes than the tensors of the request take: %w", oip.ErrMessage)
		case errors.Is(err, io.EOF):
			_ = b.conn.SetReadDeadline(time.Time{})
			return nil
		case err != nil:
			return b.fault(err)
		}
	}
}

// discard reads what is left of the body of a request that is refused: many
// clients look at an answer only when they have sent everything.
func (b *body) discard() {
	for {
		b.wait()
		_, err := io.CopyN(io.Discard, b.raw, part)
		if errors.Is(err, io.EOF) {
			_ = b.conn.SetReadDeadline(time.Time{})
		}
		if err != nil {
			return
		}
	}
}

// answer writes to a client, and gives up on one that stops.
type answer struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	stall time.Duration
}

func (a *answer) Write(data []byte) (written int, err error) {
	for len(data) > 0 && err == nil {
		_ = a.conn.SetWriteDeadline(time.Now().Add(a.stall))
		var n int
		n, err = a.w.Write(data[:min(len(data), 4*part)])
		written += n
		data = data[n:]
	}
	return written, err
}
