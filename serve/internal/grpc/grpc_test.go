package grpc_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math"
	"net/url"
	"testing"
	"testing/iotest"
	"time"

	"github.com/tenure-go/tenure/serve/internal/grpc"
)

func frame(flag byte, data string) string {
	h, _ := grpc.Header(len(data))
	h[0] = flag
	return string(h[:]) + data
}

func squeezed(data string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, data)
	w.Close()
	return b.String()
}

func TestFrames(t *testing.T) {
	body := frame(0, "one") + frame(0, "") + frame(1, squeezed("three")) + frame(0, "four") + frame(0, "five")
	f, err := grpc.NewFrames(iotest.OneByteReader(bytes.NewReader([]byte(body))), "gzip")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		length int64
		text   string
	}{{3, "one"}, {0, ""}, {-1, "three"}, {4, "fo"}, {4, "five"}} {
		n, err := f.Next(100)
		if n != want.length || err != nil {
			t.Fatalf("message %d: got %d, %v, want %d", i, n, err, want.length)
		}
		var r io.Reader = f
		if i == 3 {
			r = io.LimitReader(f, 2) // what is not read is skipped
		}
		if got, err := io.ReadAll(r); string(got) != want.text || err != nil {
			t.Errorf("message %d: got %q, %v, want %q", i, got, err, want.text)
		}
	}
	if _, err := f.Next(100); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end", err)
	}
}

func TestTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{"1H": time.Hour, "2M": 2 * time.Minute, "3S": 3 * time.Second, "4m": 4 * time.Millisecond, "5u": 5 * time.Microsecond, "12345678n": 12345678, "0S": 0, "99999999H": math.MaxInt64,
		"": -1, "S": -1, "1": -1, "1s": -1, "-1S": -1, "+1S": -1, "1.5S": -1, "123456789S": -1} {
		got, err := grpc.Timeout(value)
		if (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q: got %v, %v, want %v", value, got, err, want)
		}
	}
}

func TestEscapeText(t *testing.T) {
	for _, text := range []string{"", "plain", "100% é\n\x00\xff~"} {
		escaped := grpc.EscapeText(text)
		if got, err := url.PathUnescape(escaped); got != text || err != nil {
			t.Errorf("%q: got %q, which is %q, %v", text, escaped, got, err)
		}
	}
	if got := grpc.EscapeText("a b%\n"); got != "a b%25%0A" {
		t.Errorf("got %q", got)
	}
}

// FuzzFrames wants no panic, and no more bytes than were permitted.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(frame(0, "one")+frame(0, "two")), uint8(0))
	f.Add([]byte(frame(1, squeezed("three"))+frame(0, "x")), uint8(1))
	f.Add([]byte(frame(1, "\x78\x9c\x03\x00\x00\x00\x00\x01")), uint8(2))
	f.Add([]byte{2, 0, 0, 0, 0}, uint8(0))
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		const most = 1000
		frames, err := grpc.NewFrames(bytes.NewReader(body), []string{"", "gzip", "deflate"}[kind%3])
		if err != nil {
			t.Fatal(err)
		}
		for {
			n, err := frames.Next(most)
			if err != nil {
				if errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("got %v, want an error of gRPC or io.EOF", err)
				}
				return
			}
			data, err := io.ReadAll(frames)
			if len(data) > most || n >= 0 && err == nil && int64(len(data)) != n {
				t.Errorf("got %d bytes of %d, want at most %d", len(data), n, most)
			}
			if err != nil && n >= 0 && !frames.Broken() {
				if _, err := frames.Next(most); err == nil {
					t.Error("got a message behind one that was cut")
				}
				return
			}
		}
	})
}
