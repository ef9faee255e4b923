package npy

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/tensor"
)

// suffix is what numpy puts behind the names of arrays in a .npz file.
const suffix = ".npy"

// Archive is an open .npz file. Its Read may be called from any goroutine. The
// zero Archive has no arrays.
type Archive struct {
	names []string
	files map[string]*zip.File
	file  *os.File // nil if the caller passed the reader
}

// OpenArchive opens a .npz file. The caller closes the archive; the tensors
// read from it do not need it.
func OpenArchive(path string) (*Archive, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	a, err := openFile(f)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	a.file = f
	return a, nil
}

func openFile(f *os.File) (*Archive, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return NewArchive(f, info.Size())
}

// NewArchive reads the directory of a .npz file of the given size. r stays the
// caller's and must work as long as the archive is read. Entries whose names do
// not end in .npy are no arrays and left out.
func NewArchive(r io.ReaderAt, size int64) (*Archive, error) {
	if r == nil {
		return nil, fmt.Errorf("npy: read: got no reader, want one: %w", os.ErrInvalid)
	}
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, wrapSource(err)
	}
	a := &Archive{files: map[string]*zip.File{}}
	left := uint64(size)
	for _, f := range z.File {
		// Entries that together are longer than the file overlap: a small file
		// that unpacks to any size.
		if f.CompressedSize64 > left {
			return nil, fmt.Errorf("npy: got entries of more than the file's %d bytes, want them apart: %w", size, tensor.ErrCorrupt)
		}
		left -= f.CompressedSize64
		name, ok := strings.CutSuffix(f.Name, suffix)
		if !ok {
			continue
		}
		if a.files[name] != nil {
			return nil, fmt.Errorf("npy: got two arrays named %q, want different names: %w", name, tensor.ErrCorrupt)
		}
		a.files[name] = f
		a.names = append(a.names, name)
	}
	return a, nil
}

// Names returns the names of the arrays, without .npy, in the order of the
// file.
func (a *Archive) Names() []string {
	if a == nil {
		return nil
	}
	return slices.Clone(a.names)
}

var errNoArchive = fmt.Errorf("npy: got no archive, want one: %w", os.ErrInvalid)

// Read reads one array. The caller owns the tensor.
func (a *Archive) Read(name string) (*tensor.Tensor, error) {
	if a == nil {
		return nil, errNoArchive
	}
	f := a.files[name]
	if f == nil {
		return nil, fmt.Errorf("npy: got name %q, want one of %q: %w", name, a.names, os.ErrNotExist)
	}
	// The stated size of a stored entry is checked against the file; that of a
	// compressed entry is not trusted.
	size := int64(unknown)
	if f.Method == zip.Store && f.UncompressedSize64 == f.CompressedSize64 {
		size = int64(f.UncompressedSize64)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, wrapSource(err))
	}
	defer r.Close()
	x, err := readWhole(r, size, read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return x, nil
}

// Entry is an array with its name.
type Entry struct {
	Name   string
	Tensor *tensor.Tensor
}

// ReadAll reads all arrays in the order of the file. The caller owns the
// tensors; on an error there are none.
func (a *Archive) ReadAll() ([]Entry, error) {
	if a == nil {
		return nil, errNoArchive
	}
	entries := make([]Entry, 0, len(a.names))
	for _, name := range a.names {
		x, err := a.Read(name)
		if err != nil {
			for _, e := range entries {
				_ = e.Tensor.Release() // no other code has it
			}
			return nil, err
		}
		entries = append(entries, Entry{name, x})
	}
	return entries, nil
}

// Close closes the file that OpenArchive opened. Reads after it fail.
func (a *Archive) Close() error {
	switch {
	case a == nil:
		return errNoArchive
	case a.file == nil:
		return nil
	}
	return a.file.Close()
}

// ReadArchive opens a .npz file, reads all its arrays and closes it. The caller
// owns the tensors.
func ReadArchive(path string) ([]Entry, error) {
	a, err := OpenArchive(path)
	if err != nil {
		return nil, err
	}
	entries, err := a.ReadAll()
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return entries, errors.Join(err, a.Close())
}

// WriteArchive writes a .npz file with the entries in their order, not
// compressed, as numpy.savez does. The same entries give the same bytes.
func WriteArchive(w io.Writer, entries ...Entry) error {
	if w == nil {
		return errNoWriter
	}
	z := zip.NewWriter(w)
	seen := map[string]bool{}
	for _, e := range entries {
		if e.Name == "" || seen[e.Name] {
			return fmt.Errorf("npy: write: got name %q, want names that are not empty and differ", e.Name)
		}
		seen[e.Name] = true
		f, err := z.CreateHeader(&zip.FileHeader{Name: e.Name + suffix, Method: zip.Store})
		if err != nil {
			return fmt.Errorf("npy: write %s: %w", e.Name, err)
		}
		if err := Write(f, e.Tensor); err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("npy: write: %w", err)
	}
	return nil
}

// WriteArchiveFile writes a .npz file, which appears under its name when it is
// whole. A file that was there is replaced.
func WriteArchiveFile(path string, entries ...Entry) error {
	return wholefile.Write(path, func(w io.Writer) error { return WriteArchive(w, entries...) })
}

// wrapSource wraps an error of reading in its kind.
func wrapSource(err error) error {
	kind := tensor.ErrCorrupt
	var flateErr flate.CorruptInputError
	switch {
	case errors.Is(err, zip.ErrAlgorithm):
		kind = tensor.ErrUnsupported
	case errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrChecksum), errors.As(err, &flateErr),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
	default:
		return fmt.Errorf("npy: read: %w", err)
	}
	return fmt.Errorf("npy: read: %w: %w", err, kind)
}
