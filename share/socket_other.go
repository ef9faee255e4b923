//go:build !linux

package share

import (
	"errors"
	"net"
	"os"
	"time"
)

// All functions that create or find an owner fail first on this system, so the
// functions below are never called.
const supported = false

var errBusy = errors.New("socket buffer is full")

type socket struct{}

func newSocket(*os.File) (*socket, error)                        { return nil, errUnsupported }
func wrapSocket(*net.UnixConn) (*socket, error)                  { return nil, errUnsupported }
func (*socket) send([]byte, int, bool) error                     { return errUnsupported }
func (*socket) receive([]byte) (n, fd int, lost bool, err error) { return 0, -1, false, errUnsupported }
func (*socket) awaitEnd()                                        {}
func (*socket) shutWrite()                                       {}
func (*socket) close()                                           {}
func (*socket) setDeadline(time.Time)                            {}
func (*socket) sameUser() (pid int, err error)                   { return 0, errUnsupported }
func closeDescriptor(int)                                        {}
func commandOf(int) string                                       { return "" }
func bootID() [16]byte                                           { return [16]byte{} }
func pair() (ours, theirs *os.File, err error)                   { return nil, nil, errUnsupported }
func isNobody(error) bool                                        { return false }
func closeOnExec(int)                                            {}
func duplicate(int) (int, error)                                 { return -1, errUnsupported }
func (*socket) awaitEndUntil() (<-chan struct{}, func())         { return nil, nil }
func (*socket) interrupt()                                       {}
func (*socket) resume()                                          {}
func (*socket) hungUp() bool                                     { return true }
func systemLimits() (descriptors, maps int)                      { return 1024, 1024 }

// fileLock is a lock on a file that ends with its process.
type fileLock struct{}

func (*fileLock) remove()                  {}
func takeLock(string) (*fileLock, error)   { return nil, errUnsupported }
func userFolder() string                   { return "" }
func privateFolder(string) (string, error) { return "", errUnsupported }
func (*socket) readable() bool             { return false }
func (*socket) unread() int                { return 0 }
func (*socket) interruptSend()             {}
func (*socket) resumeSend()                {}
func (*socket) process(int) *os.File       { return nil }
func awaitDeath(*os.File)                  {}
