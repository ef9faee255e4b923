package wholefile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
)

// parts tells apart the files that this process is writing.
var parts atomic.Int64

// Write creates a file with the bytes that fill writes, and renames it to path.
// A new file is made with mode 0666, less the umask; one that is replaced keeps
// its mode. A link stays, and the file that it names is replaced; anything but
// a regular file, such as /dev/stdout, is written into. Errors begin with path;
// if fill fails they match its error, and the old file is unchanged.
func Write(path string, fill func(io.Writer) error) error {
	if err := write(path, fill); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func write(path string, fill func(io.Writer) error) error {
	target, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		target, err = path, nil
	}
	if err != nil {
		return reason(err)
	}
	mode := fs.FileMode(0o666)
	if info, err := os.Stat(target); err == nil {
		if info.IsDir() {
			return errors.New("got a directory, want a file")
		}
		if !info.Mode().IsRegular() { // there is nothing to replace
			return fillFile(target, os.O_WRONLY, mode, fill)
		}
		mode = info.Mode().Perm()
	}
	part := fmt.Sprintf("%s.%d-%d.part", target, os.Getpid(), parts.Add(1))
	err = fillFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode, fill)
	if err == nil {
		err = reason(os.Rename(part, target))
	}
	if err != nil {
		_ = os.Remove(part) // the first error is the one to know
	}
	return err
}

func fillFile(path string, how int, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := os.OpenFile(path, how, mode)
	if err != nil {
		return reason(err)
	}
	b := bufio.NewWriterSize(f, 1<<16)
	err = fill(b)
	if err == nil {
		err = reason(b.Flush())
	}
	return errors.Join(err, reason(f.Close()))
}

// reason takes the names of files from an error: the caller of Write is told of
// the one that it knows.
func reason(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
