package onnx

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/filekind"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// files gives the bytes of tensors that lie outside the model file. Each file
// is opened once.
type files struct {
	dir      string                               // "" for none
	fsys     fs.FS                                // instead of dir, nil for none
	copied   func([]byte) (*memory.Buffer, error) // instead of mapping, nil for none
	copiedFS func([]byte) (*memory.Buffer, error) // of what fsys gives, nil for none
	opened   map[string][]byte
	loaded   map[*tensorProto]string // of the model file, by the name of its first weight
	weights  *Weights                // keeps the mappings
}

// location is where external_data says that a tensor's bytes are.
type location struct {
	path           string
	offset, length int64 // length -1: not given
}

func parseLocation(entries []entryProto) (l location, err error) {
	l.length = -1
	for _, e := range entries {
		switch e.key {
		case "location":
			l.path = e.value
		case "offset":
			l.offset, err = parseSize(e)
		case "length":
			l.length, err = parseSize(e)
		}
		if err != nil {
			return l, err
		}
	}
	if l.path == "" {
		return l, corruptf("location is missing")
	}
	return l, nil
}

func parseSize(e entryProto) (int64, error) {
	n, err := strconv.ParseInt(e.value, 10, 64)
	if err != nil || n < 0 {
		return 0, corruptf("%s: got %q, want a number of bytes", e.key, e.value)
	}
	return n, nil
}

// read returns size bytes from where the entries say.
func (f *files) read(entries []entryProto, size int) ([]byte, error) {
	l, err := parseLocation(entries)
	if err != nil {
		return nil, err
	}
	if l.length >= 0 && l.length != int64(size) {
		return nil, corruptf("%q: got a length of %d bytes, want %d", l.path, l.length, size)
	}
	data, ok := f.opened[l.path]
	if !ok {
		if data, err = f.open(l.path); err != nil {
			return nil, err
		}
		if filekind.IsPointer(data) { // its bytes would pass for those of a small weight
			return nil, corruptf("%q: %s", l.path, filekind.Of(data).Got("the weights of the model"))
		}
		f.opened[l.path] = data
	}
	if int64(size) > int64(len(data))-l.offset {
		what := filekind.Of(data).Got("the weights of the model")
		if what != "" {
			what = ": " + what
		}
		return nil, corruptf("%q: got %d bytes at offset %d, want them inside the file's %d%s", l.path, size, l.offset, len(data), what)
	}
	return data[l.offset : l.offset+int64(size)], nil
}

// open maps a file in the model's folder. A path that leaves the folder, by
// its elements or through a symbolic link, is refused: a model may come from
// anybody.
func (f *files) open(path string) ([]byte, error) {
	for _, part := range strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == ".." {
			return nil, corruptf(`location: got %q, want a path without ".."`, path)
		}
	}
	if !filepath.IsLocal(path) || strings.HasPrefix(path, `\`) {
		return nil, corruptf("location: got %q, want a path inside the model's folder", path)
	}
	if f.fsys != nil {
		data, err := f.weights.readFS(f.fsys, filepath.ToSlash(filepath.Clean(path)), f.copiedFS)
		if err != nil {
			return nil, fmt.Errorf("location %q: %w", path, err)
		}
		return data, nil
	}
	if f.dir == "" {
		return nil, fmt.Errorf("location %q: the model was not read from a folder: %w", path, tensor.ErrUnsupported)
	}
	full, err := f.resolve(path)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", path, err)
	}
	buf, err := mapFile(full, f.copied)
	if err != nil {
		return nil, fmt.Errorf("location %q: %w", path, err)
	}
	f.weights.hold(buf)
	return buf.Bytes(), nil
}

// readFS reads a file of a file system, into a copy that the table keeps if
// there is to be one.
func (w *Weights) readFS(fsys fs.FS, name string, copied func([]byte) (*memory.Buffer, error)) ([]byte, error) {
	data, err := fs.ReadFile(fsys, name)
	if err != nil || copied == nil {
		return data, err
	}
	buf, err := copied(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.hold(buf)
	return buf.Bytes(), nil
}

// resolve follows symbolic links and checks where they end.
func (f *files) resolve(path string) (string, error) {
	root, err := filepath.EvalSymlinks(f.dir)
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

// kindOf names what is no regular file.
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

// mapFile maps a regular file, or gives a copy of its bytes. Opening a pipe
// would wait for its writer, so that is found out first.
func mapFile(path string, copied func([]byte) (*memory.Buffer, error)) (*memory.Buffer, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: got %s, want a regular file", path, kindOf(info.Mode()))
	}
	buf, err := memory.MapFile(path)
	if err != nil {
		return nil, err
	}
	if copied != nil {
		mapped := buf
		buf, err = copied(mapped.Bytes())
		if err = errors.Join(err, mapped.Release()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	buf.SetLabel(path)
	return buf, nil
}

// copied returns a copy in memory of the process.
func copied(data []byte) (*memory.Buffer, error) {
	buf, err := memory.Alloc(len(data), memory.Weights)
	if err == nil {
		copy(buf.Bytes(), data)
	}
	return buf, err
}
