package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tenure-go/tenure/serve/internal/grpc"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// call is a call of gRPC: a request of HTTP/2 whose bodies are messages.
type call struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	conn   *http.ResponseController
	in     patient
	frames *grpc.Frames

	mu     sync.Mutex
	idle   bool // it waits for the client's next message
	ending bool // it must not begin to wait
}

// isCall reports whether a request is a call of gRPC, or of one of its kin.
func isCall(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// serveCall answers a call of gRPC.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request) {
	media, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	switch {
	case media != "application/grpc" && media != "application/grpc+proto":
		_ = s.answerError(w, http.StatusUnsupportedMediaType, fmt.Errorf("got the Content-Type %.100q, want application/grpc", media))
		return
	case r.ProtoMajor < 2:
		_ = s.answerError(w, http.StatusHTTPVersionNotSupported, fmt.Errorf("got gRPC over %s, want HTTP/2", r.Proto))
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		_ = s.answerError(w, http.StatusMethodNotAllowed, fmt.Errorf("got gRPC with %s, want POST", r.Method))
		return
	}
	c := &call{server: s, w: w, r: r, conn: http.NewResponseController(w)}
	w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
	w.Header().Set("Grpc-Accept-Encoding", grpc.Encodings)
	err := c.open()
	if err == nil {
		err = c.serve()
	}
	code, text := grpc.OK, ""
	if err != nil {
		code, text = s.codeOf(err, r.URL.Path)
	}
	w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(code)))
	if text != "" {
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", grpc.EscapeText(text))
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(smallAnswer))
}

// open reads what the head of the request says of the messages.
func (c *call) open() (err error) {
	c.in = patient{c: c, r: c.r.Body}
	c.frames, err = grpc.NewFrames(&c.in, c.r.Header.Get("Grpc-Encoding"))
	return err
}

// serve finds the method, and calls it within the time that the client gives.
func (c *call) serve() error {
	m, err := methodOf(c.r.URL.Path)
	if err != nil {
		return err
	}
	if !m.open && !c.server.admits(c.r) {
		return grpc.Errorf(grpc.Unauthenticated, "got no token, or another one, want that of the server")
	}
	c.ctx = c.r.Context()
	if value := c.r.Header.Get("Grpc-Timeout"); value != "" {
		d, err := grpc.Timeout(value)
		if err != nil {
			return err
		}
		var cancel context.CancelFunc
		c.ctx, cancel = context.WithTimeoutCause(c.ctx, d, fmt.Errorf("%w: the deadline of the call has passed", ErrTimeout))
		defer cancel()
	}
	return m.serve(c)
}

// next moves to the next message: see grpc.Frames. A stream may wait for it as
// long as the server does not end; the message of a simple call must come.
func (c *call) next(most int64, stream bool) (int64, error) {
	c.in.left = 0
	if err := c.frames.Skip(); err != nil {
		return 0, err
	}
	if stream {
		c.mu.Lock()
		if c.ending {
			c.mu.Unlock()
			return 0, ErrClosed
		}
		c.idle, c.in.waits = true, true
		_ = c.conn.SetReadDeadline(time.Time{})
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			c.idle, c.in.waits = false, false
			c.mu.Unlock()
		}()
	}
	n, err := c.frames.Next(most)
	if errors.Is(err, io.EOF) && !stream {
		err = grpc.Errorf(grpc.InvalidArgument, "got no message, want one")
	}
	return n, err
}

// endStream makes a stream end when what it has begun is answered.
func (c *call) endStream() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	if c.idle {
		_ = c.conn.SetReadDeadline(time.Now().Add(-time.Second))
	}
}

// isEnding reports whether endStream was called.
func (c *call) isEnding() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ending
}

// message reads a whole message that carries no tensors.
func (c *call) message(stream bool) ([]byte, error) {
	if _, err := c.next(maxControl, stream); err != nil {
		return nil, err
	}
	return io.ReadAll(c.frames) // it has maxControl bytes at most
}

// send writes a message that consists of parts.
func (c *call) send(parts ...[]byte) error {
	length := 0
	for _, p := range parts {
		length += len(p)
	}
	h, err := grpc.Header(length)
	if err != nil {
		return err
	}
	out := &answer{w: c.w, conn: c.conn, stall: c.server.config.Stall}
	_, err = out.Write(h[:])
	for _, p := range parts {
		if err == nil {
			_, err = out.Write(p)
		}
	}
	return gone(err)
}

// flush ends a message of a stream, which goes on.
func (c *call) flush(err error) error {
	if err == nil {
		err = gone(c.conn.Flush())
	}
	_ = c.conn.SetWriteDeadline(time.Time{})
	return err
}

// patient reads from a client, and gives up on one that stops.
type patient struct {
	c     *call
	r     io.Reader
	left  int  // bytes that may come before the client gets more time
	waits bool // the next byte may take any time

	failed error // nothing can be read any more
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		p.failed = err
	}
	return n, err
}

func (p *patient) read(b []byte) (int, error) {
	c := p.c
	if p.waits {
		b = b[:min(1, len(b))] // then it must go on
	} else if p.left <= 0 {
		end := time.Now().Add(c.server.config.Stall)
		if d, ok := c.ctx.Deadline(); ok && d.Before(end) {
			end = d
		}
		_ = c.conn.SetReadDeadline(end)
		p.left = part
	}
	n, err := p.r.Read(b)
	p.left -= n
	if n > 0 && p.waits {
		p.waits, p.left = false, 0
	}
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case c.isEnding():
		return n, ErrClosed
	case !errors.Is(err, os.ErrDeadlineExceeded):
		return n, errStopped
	}
	if d, ok := c.ctx.Deadline(); ok && !time.Now().Before(d) {
		<-c.ctx.Done()
		return n, context.Cause(c.ctx)
	}
	return n, fmt.Errorf("got no bytes for %v, want the rest of the message: %w", c.server.config.Stall, oip.ErrMessage)
}

// codeOf returns the status of an error, and its text for the client.
func (s *Server) codeOf(err error, path string) (grpc.Code, string) {
	if e, ok := errors.AsType[*grpc.Error](err); ok {
		return e.Code, err.Error()
	}
	if errors.Is(err, errStopped) {
		return grpc.Canceled, "" // nobody reads it
	}
	if code := codeOf(err); code != grpc.Internal {
		return code, err.Error()
	}
	s.config.Log.Error("a request failed", "path", path, "error", err)
	line, _, _ := strings.Cut(err.Error(), "\n") // the stack of a fault is for the log
	return grpc.Internal, line
}

func codeOf(err error) grpc.Code {
	switch {
	case errors.Is(err, errExists):
		return grpc.AlreadyExists
	case errors.Is(err, context.Canceled):
		return grpc.Canceled
	case errors.Is(err, ErrTimeout) && !errors.Is(err, ErrBusy):
		return grpc.DeadlineExceeded
	}
	switch status(err) {
	case http.StatusNotFound:
		return grpc.NotFound
	case http.StatusRequestEntityTooLarge:
		return grpc.ResourceExhausted
	case http.StatusServiceUnavailable:
		return grpc.Unavailable
	case http.StatusBadRequest:
		return grpc.InvalidArgument
	case http.StatusNotImplemented:
		return grpc.Unimplemented
	}
	return grpc.Internal
}
