package weights

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Location is where external data lie: in which file of the model's folder,
// from which offset on, and how many bytes.
type Location struct {
	Path           string
	Offset, Length int64 // Length -1: not said
}

// MapFile maps a regular file, or reads it if the options say so, and returns
// its bytes. The store keeps it as long as weights lie in it.
func (s *Store) MapFile(path string) ([]byte, error) {
	b, err := s.openFile(path)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffers = append(s.buffers, b)
	return b.Bytes(), nil
}

// ReadFS reads a file of a file system and returns its bytes, which lie in
// memory that processes have in common if the options say so.
func (s *Store) ReadFS(fsys fs.FS, name string) ([]byte, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil || s.opts.Share == nil {
		return data, err
	}
	b, err := s.opts.Share.file(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buffers = append(s.buffers, b)
	return b.Bytes(), nil
}

// External returns size bytes of external data. Each file is opened once.
func (s *Store) External(l Location, size int) ([]byte, error) {
	if l.Length >= 0 && l.Length != int64(size) {
		return nil, corruptf("%q: got a length of %d bytes, want %d", l.Path, l.Length, size)
	}
	data, err := s.external(l.Path)
	if err != nil {
		return nil, err
	}
	if int64(size) > int64(len(data))-l.Offset {
		what := filekind.Of(data).Got("the weights of the model")
		if what != "" {
			what = ": " + what
		}
		return nil, corruptf("%q: got %d bytes at offset %d, want them inside the file's %d%s", l.Path, size, l.Offset, len(data), what)
	}
	return data[l.Offset : l.Offset+int64(size)], nil
}

// external returns the bytes of a file of external data.
func (s *Store) external(path string) ([]byte, error) {
	s.mu.RLock()
	data, ok := s.opened[path]
	s.mu.RUnlock()
	if ok {
		return data, nil
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	data, err := s.openExternal(path)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", path, err)
	}
	if filekind.IsPointer(data) { // its bytes would pass for those of a small weight
		return nil, corruptf("%q: %s", path, filekind.Of(data).Got("the weights of the model"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[path] = data
	return data, nil
}

// checkPath refuses a path that leaves the model's folder, because models are
// not trusted.
func checkPath(path string) error {
	depth := 0 // folders below that of the model
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		switch part {
		case ".":
		case "..":
			depth--
		default:
			depth++
		}
		if depth < 0 {
			break
		}
	}
	if depth < 0 || !filepath.IsLocal(path) || strings.HasPrefix(path, `\`) {
		return corruptf("location: got %q, want a path inside the model's folder", path)
	}
	return nil
}

func (s *Store) openExternal(path string) ([]byte, error) {
	switch {
	case s.opts.FS != nil:
		return s.ReadFS(s.opts.FS, filepath.ToSlash(filepath.Clean(path)))
	case s.opts.Dir == "":
		return nil, fmt.Errorf("the model was not read from a folder: %w", tensor.ErrUnsupported)
	}
	full, err := resolve(s.opts.Dir, path)
	if err != nil {
		return nil, err
	}
	return s.MapFile(full)
}

// resolve follows symbolic links and refuses those that lead out of the folder.
func resolve(dir, path string) (string, error) {
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	full, err := filepath.EvalSymlinks(filepath.Join(root, path))
	if err != nil {
		return "", err
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) {
		return "", corruptf("got a link to %s, want a file inside the model's folder", full)
	}
	return full, nil
}

// openFile maps a file, or copies its bytes. Opening a pipe would wait for its
// writer, so the kind of the file is checked first.
func (s *Store) openFile(path string) (*memory.Buffer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: got %s, want a regular file", path, kindOf(info.Mode()))
	}
	b, err := memory.MapFile(path)
	if err != nil {
		return nil, err
	}
	if s.opts.Read {
		file := b
		b, err = s.copyFile(file.Bytes())
		if err = errors.Join(err, file.Release()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	b.SetLabel(path)
	return b, nil
}

// copyFile returns a copy of a file's bytes.
func (s *Store) copyFile(data []byte) (*memory.Buffer, error) {
	if s.opts.Share != nil {
		return s.opts.Share.file(data)
	}
	b, err := memory.Alloc(len(data), memory.Weights)
	if err == nil {
		s.copyCounted(b.Bytes(), data)
	}
	return b, err
}

// file returns a copy of a file's bytes that processes have in common.
func (share Share) file(data []byte) (*memory.Buffer, error) {
	if len(data) == 0 {
		return memory.Alloc(0, memory.Weights)
	}
	digest := sha256.Sum256(data)
	key := sha256.Sum256(append([]byte("tenure file\n"), digest[:]...))
	return share(context.Background(), key, len(data), func(dst []byte) error {
		copy(dst, data)
		return nil
	})
}

// kindOf names the kind of a file that is not a regular one.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeNamedPipe != 0:
		return "a pipe"
	}
	return "a special file"
}

func corruptf(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, tensor.ErrCorrupt)...)
}
