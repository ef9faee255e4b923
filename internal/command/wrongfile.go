package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/tenure-go/tenure/internal/filekind"
)

// mostLookedAt is the size of the largest file that is examined after it
// could not be read as expected.
const mostLookedAt = 64 << 20

// wrongFile returns the error of a file that could not be read; if the file
// is of another kind than wanted, the error names that kind. It begins with
// the file's name, once.
func wrongFile(path, want string, wanted []string, err error) error {
	var missing *fs.PathError
	if err == nil || errors.As(err, &missing) {
		return err // with the file's name
	}
	if what := lookAt(path, want, wanted); what != "" {
		return fmt.Errorf("%s: %s", path, what)
	}
	return err
}

// lookAt returns a description of a regular file, or "" if it is of a wanted
// kind or not known.
func lookAt(path, want string, wanted []string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostLookedAt {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostLookedAt))
	if err != nil {
		return ""
	}
	kind := filekind.Of(data)
	if slices.Contains(wanted, kind.Name) {
		return ""
	}
	return kind.Got(want)
}
