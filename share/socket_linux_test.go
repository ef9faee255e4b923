package share

import (
	"errors"
	"io"
	"testing"
)

// TestReceiveAfterReset: a peer that dies with packets unread has sent others,
// and they come before its end of file.
func TestReceiveAfterReset(t *testing.T) {
	a, b, err := pair()
	if err != nil {
		t.Fatal(err)
	}
	here, there := ok(newSocket(a))(t), ok(newSocket(b))(t)
	defer here.close()
	if err := here.send([]byte("never read"), -1, true); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"first", "second"} {
		if err := there.send([]byte(text), -1, true); err != nil {
			t.Fatal(err)
		}
	}
	there.close()
	packet := make([]byte, maxPacket)
	for _, want := range []string{"first", "second"} {
		n, _, _, err := here.receive(packet)
		if got := string(packet[:n]); err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	if _, _, _, err := here.receive(packet); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: got %v, want io.EOF", err)
	}
}
