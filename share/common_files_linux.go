package share

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/ended"
)

// commonFolder returns the folder of the locks and sockets of common bytes, and
// creates it if it is missing.
func commonFolder(opts []Option) (string, error) {
	dir, err := resolve(opts)
	if err != nil {
		return "", err
	}
	return privateFolder(filepath.Join(dir, "common"))
}

// userFolder returns the folder for files of this user.
func userFolder() string {
	if dir := os.Getenv("TENURE_SHARE_DIR"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "tenure")
	}
	run := fmt.Sprintf("/run/user/%d", os.Geteuid())
	if info, err := os.Stat(run); err == nil && info.IsDir() {
		return filepath.Join(run, "tenure")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tenure-%d", os.Geteuid()))
}

// privateFolder creates a folder if it is missing, and refuses one that other
// users may enter.
func privateFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", &fs.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return "", fmt.Errorf("%s: got something else, want a directory", dir)
	}
	if me := os.Geteuid(); int(st.Uid) != me || st.Mode&0o077 != 0 {
		return "", fmt.Errorf("%s: got a directory of user %d with mode %#o, want one of user %d that no other user may enter (0700)", dir, st.Uid, st.Mode&0o777, me)
	}
	return dir, nil
}

// fileLock is a lock on an empty file. It ends with its process.
type fileLock struct {
	fd   int
	path string
}

// lockFile waits for the lock of a file, and creates the file if it is missing.
func lockFile(ctx context.Context, path string) (*fileLock, error) {
	for {
		fd, err := openLock(path)
		if err != nil {
			return nil, err
		}
		if err := waitForLock(ctx, fd); err != nil {
			return nil, fmt.Errorf("waiting for another process that makes them: %w", err)
		}
		if l := (&fileLock{fd, path}); l.isNamed() {
			return l, nil
		}
		_ = unix.Close(fd) // the previous holder of the lock has removed the file
	}
}

// tryLock takes the lock of an existing file, if it is free.
func tryLock(path string) (*fileLock, error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if l := (&fileLock{fd, path}); err == nil && l.isNamed() {
		return l, nil
	}
	return nil, errors.Join(err, fs.ErrNotExist, unix.Close(fd))
}

// takeLock takes the lock of a file without waiting, and creates the file if it
// is missing; nil if another process has the lock.
func takeLock(path string) (*fileLock, error) {
	for {
		fd, err := openLock(path)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
		l := &fileLock{fd, path}
		if err == nil && l.isNamed() {
			return l, nil
		}
		_ = unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, nil
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return nil, &fs.PathError{Op: "flock", Path: path, Err: err}
		}
	}
}

// remove removes the file of a lock and unlocks it.
func (l *fileLock) remove() {
	_ = os.Remove(l.path)
	l.unlock()
}

func openLock(path string) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
		if !errors.Is(err, unix.EINTR) {
			if err != nil {
				err = &fs.PathError{Op: "open", Path: path, Err: err}
			}
			return fd, err
		}
	}
}

// waitForLock waits in the kernel, without polling. If ctx ends first, the
// descriptor is closed as soon as the lock is acquired.
func waitForLock(ctx context.Context, fd int) error {
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err == nil {
		return nil
	}
	got := make(chan error, 1)
	go func() {
		err := unix.Flock(fd, unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(fd, unix.LOCK_EX)
		}
		got <- err
	}()
	select {
	case err := <-got:
		if err != nil {
			_ = unix.Close(fd)
		}
		return err
	case <-ctx.Done():
		go func() {
			<-got
			_ = unix.Close(fd)
		}()
		return ended.Error(ctx)
	}
}

// isNamed reports whether the path still names the file that is locked.
func (l *fileLock) isNamed() bool {
	var mine, named unix.Stat_t
	if unix.Fstat(l.fd, &mine) != nil || unix.Lstat(l.path, &named) != nil {
		return false
	}
	return mine.Dev == named.Dev && mine.Ino == named.Ino
}

func (l *fileLock) unlock() { _ = unix.Close(l.fd) }

// removeWithout removes the lock of a copy that no process has, and unlocks it.
func (l *fileLock) removeWithout(folder, name string) {
	if len(socketsOf(folder, name)) == 0 {
		_ = os.Remove(l.path)
	}
	l.unlock()
}

// socketsOf lists the sockets of the copy of that name, or of all copies if it
// is empty.
func socketsOf(folder, name string) (paths []string) {
	entries, _ := os.ReadDir(folder) // a folder that cannot be read has no sockets
	for _, e := range entries {
		if (name == "" || strings.HasPrefix(e.Name(), name+".")) && strings.HasSuffix(e.Name(), ".sock") {
			paths = append(paths, filepath.Join(folder, e.Name()))
		}
	}
	return paths
}

// removeStale removes the files of killed processes, for copies that no process
// has.
func removeStale(folder string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".lock")
		if !ok {
			continue
		}
		lock, err := tryLock(filepath.Join(folder, e.Name()))
		if err != nil {
			continue // another process has the lock
		}
		for _, path := range socketsOf(folder, name) {
			if refuses(path) {
				_ = os.Remove(path)
			}
		}
		lock.removeWithout(folder, name)
	}
}

// refuses reports whether no process listens on a socket.
func refuses(path string) bool {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return isNobody(unix.Connect(fd, &unix.SockaddrUnix{Name: path}))
}
