package npy

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Read reads one array and leaves r behind its last byte. The caller owns the
// tensor.
func Read(r io.Reader) (*tensor.Tensor, error) {
	if r == nil {
		return nil, fmt.Errorf("npy: read: got no reader, want one: %w", os.ErrInvalid)
	}
	return read(r, unknown)
}

// ReadFile reads a file that holds one array and nothing else. The caller owns
// the tensor.
func ReadFile(path string) (*tensor.Tensor, error) { return readFile(path, read) }

// readFile calls read for a file that must end with the array.
func readFile(path string, read func(io.Reader, int64) (*tensor.Tensor, error)) (*tensor.Tensor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	size := int64(unknown)
	if info.Mode().IsRegular() {
		size = info.Size()
	}
	x, err := readWhole(f, size, read)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// unknown is the size of a stream.
const unknown = -1

// readWhole calls read for a source that must end with the array.
func readWhole(r io.Reader, size int64, read func(io.Reader, int64) (*tensor.Tensor, error)) (*tensor.Tensor, error) {
	x, err := read(r, size)
	if err != nil {
		return nil, err
	}
	// Reading to the end also makes a zip entry check its checksum.
	switch _, err := io.ReadFull(r, make([]byte, 1)); {
	case err == nil:
		err = fmt.Errorf("npy: got bytes behind the data of %s%s, want the end: %w", x.DType(), x.Shape(), tensor.ErrCorrupt)
		return nil, release(x, err)
	case err != io.EOF:
		return nil, release(x, wrapSource(err))
	}
	return x, nil
}

// release releases a tensor that no other code has, because of err.
func release(x *tensor.Tensor, err error) error {
	_ = x.Release()
	return err
}

// read reads one array from a source of size bytes, which may be unknown.
func read(r io.Reader, size int64) (*tensor.Tensor, error) {
	counted := &counter{r: r}
	a, err := begin(counted)
	if err != nil {
		return nil, err
	}
	return a.read(counted, size)
}

// array is what the header of an array says.
type array struct {
	element
	shape   *shape.Shape // of the data as it lies in the file
	bytes   int
	fortran bool // the data is the transposed array
}

// begin reads the header of an array.
func begin(r *counter) (a array, err error) {
	h, err := readHeader(r)
	if err != nil {
		return a, err
	}
	if a.element, err = parseDescr(h.descr); err != nil {
		return a, err
	}
	if h.fortran {
		slices.Reverse(h.dims) // as it lies in the file it is the transposed array in C order
	}
	if a.text > 0 {
		h.dims = append(h.dims, a.text)
	}
	if a.shape, err = shape.Of(h.dims...); err != nil {
		return a, fmt.Errorf("npy: %w: %w", err, tensor.ErrCorrupt)
	}
	if a.bytes, err = shape.Bytes(a.dt, a.shape); err != nil {
		return a, fmt.Errorf("npy: %w: %w", err, tensor.ErrCorrupt)
	}
	a.fortran = h.fortran && a.shape.Rank() > 1
	return a, nil
}

// read reads the data behind the header.
func (a array) read(r *counter, size int64) (*tensor.Tensor, error) {
	x, err := readData(r, a.dt, a.shape, a.bytes, size)
	if err != nil {
		return nil, err
	}
	if err := normalizeTensor(x, a.dt, a.swap); err != nil {
		return nil, release(x, err)
	}
	if a.fortran {
		if x, err = toRowMajor(x, a.text > 0); err != nil {
			return nil, err
		}
	}
	if a.dt == dtype.U32 && a.text > 0 {
		return encoded(x)
	}
	return x, nil
}

// readData reads the data of an array into a tensor. Of a source of unknown
// size, which may be much shorter than its header says, the tensor is allocated
// only when all of it is there.
func readData(r *counter, dt dtype.DType, s *shape.Shape, want int, size int64) (*tensor.Tensor, error) {
	var chunks [][]byte
	if size == unknown {
		var err error
		if chunks, err = readChunks(r, want); err != nil {
			return nil, shortData(dt, s, want, length(chunks), err)
		}
	} else if left := size - r.n; left < int64(want) {
		return nil, shortData(dt, s, want, int(left), io.ErrUnexpectedEOF)
	}
	x, err := tensor.New(dt, s)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	data, err := x.Lock()
	if err != nil {
		return nil, release(x, fmt.Errorf("npy: %w", err))
	}
	defer data.Release()
	if size != unknown {
		if n, err := io.ReadFull(r, data.Data); err != nil {
			return nil, release(x, shortData(dt, s, want, n, err))
		}
		return x, nil
	}
	at := 0
	for _, c := range chunks {
		at += copy(data.Data[at:], c)
	}
	return x, nil
}

// readChunks reads n bytes in pieces that grow with what has come.
func readChunks(r io.Reader, n int) ([][]byte, error) {
	const first, most = 64 << 10, 64 << 20
	var chunks [][]byte
	for size := first; n > 0; size = min(2*size, most) {
		c := make([]byte, min(size, n))
		got, err := io.ReadFull(r, c)
		chunks = append(chunks, c[:got])
		if err != nil {
			return chunks, err
		}
		n -= got
	}
	return chunks, nil
}

func length(chunks [][]byte) int {
	n := 0
	for _, c := range chunks {
		n += len(c)
	}
	return n
}

func shortData(dt dtype.DType, s *shape.Shape, want, got int, err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("npy: got %d bytes of data for %s%s, want %d: %w", max(got, 0), dt, s, want, tensor.ErrCorrupt)
	}
	return wrapSource(err)
}

func normalizeTensor(x *tensor.Tensor, dt dtype.DType, swap int) error {
	data, err := x.Lock()
	if err != nil {
		return fmt.Errorf("npy: %w", err)
	}
	defer data.Release()
	normalize(dt, swap, data.Data)
	return nil
}

// toRowMajor releases x and returns its transpose, contiguous. Strings stay
// whole.
func toRowMajor(x *tensor.Tensor, text bool) (*tensor.Tensor, error) {
	axes := make([]int, x.Shape().Rank())
	for i := range axes {
		axes[i] = len(axes) - 1 - i
	}
	if text {
		axes = append(axes[1:], axes[0])
	}
	t, err := x.Donate().Permute(axes...)
	if err != nil {
		return nil, release(x, fmt.Errorf("npy: %w", err))
	}
	defer t.Release()
	c, _, err := t.Contiguous()
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return c, nil
}

// counter counts the bytes that were read.
type counter struct {
	r io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if c.n > math.MaxInt64-int64(n) {
		return n, fmt.Errorf("npy: got more than %d bytes", int64(math.MaxInt64))
	}
	c.n += int64(n)
	return n, err
}
