package serve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// regionFolder is where the system has its shared memory as files.
const regionFolder = "/dev/shm"

// openRegion opens shared memory by its name, which must belong to the user of
// this process: a client must not reach others' through the server.
func openRegion(name string) (*os.File, error) {
	if name == "" || name == "." || name == ".." || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
		return nil, errors.New("got a key that is no name of shared memory, want one without slashes but the first")
	}
	// Without O_NONBLOCK a pipe of that name would wait for its other end.
	file, err := os.OpenFile(filepath.Join(regionFolder, name), os.O_RDWR|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		if pathError, ok := errors.AsType[*os.PathError](err); ok {
			err = pathError.Err // the client has said the name itself
		}
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("got something that is no shared memory")
	}
	if err == nil {
		if owner, ok := info.Sys().(*syscall.Stat_t); !ok || owner.Uid != uint32(os.Geteuid()) {
			err = fmt.Errorf("got shared memory of another user, want that of the server's, %d", os.Geteuid())
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
