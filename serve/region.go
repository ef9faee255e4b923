package serve

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// mostRegions is how many regions there may be at a time: each has a file open.
const mostRegions = 1024

// region is a part of the system's shared memory that a client has registered.
// It is read and written as a file, and never mapped: a client may truncate it
// at any time.
type region struct {
	Name   string `json:"name"`
	Key    string `json:"key"`
	Offset int64  `json:"offset"`
	Size   int64  `json:"byte_size"`

	file *os.File
	all  *regions

	// These belong to the lock of all.
	users   int
	removed bool
}

// regions are those of a server.
type regions struct {
	mu sync.Mutex
	by map[string]*region
}

// errNoRegions is the error of a server that takes none.
var errNoRegions = fmt.Errorf("system shared memory is not used here: the server was not started with it: %w", tenure.ErrUnsupported)

// checkLocal refuses clients on other machines: what they name would be another
// region than theirs.
func checkLocal(r *http.Request) error {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return nil // a socket without addresses is local
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("got a region of shared memory from another machine, want clients of this one: %w", oip.ErrMessage)
}

// register opens a region.
func (s *Server) register(r *http.Request, name, key string, offset, size int64) error {
	if !s.config.SharedMemory {
		return errNoRegions
	}
	if err := checkLocal(r); err != nil {
		return err
	}
	switch {
	case name == "" || len(name) > 1024:
		return fmt.Errorf("got the name %.40q of a region, want one of 1 to 1024 bytes: %w", name, oip.ErrMessage)
	case offset < 0 || size <= 0:
		return known(oip.ErrMessage, "Invalid offset for shared memory region: '%s': got %d and the byte_size %d, want zero or more, and one byte or more", name, offset, size)
	}
	file, err := openRegion(strings.TrimPrefix(key, "/"))
	if err != nil {
		return known(oip.ErrMessage, "Unable to open shared memory region: '%s': %v", name, err)
	}
	fresh := &region{Name: name, Key: key, Offset: offset, Size: size, file: file, all: &s.regions}
	info, err := file.Stat()
	if err == nil && (size > info.Size() || offset > info.Size()-size) {
		err = known(oip.ErrMessage, "Invalid offset for shared memory region: '%s': got %d bytes at %d, want at most the %d bytes that it has", name, size, offset, info.Size())
	}
	if err == nil {
		err = s.regions.add(fresh)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	return nil
}

func (all *regions) add(r *region) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.by == nil {
		all.by = map[string]*region{}
	}
	if all.by[r.Name] != nil {
		return known(errExists, "shared memory region '%s' already in manager", r.Name)
	}
	if len(all.by) >= mostRegions {
		return fmt.Errorf("got %d regions of shared memory, want fewer: %w", len(all.by), ErrBusy)
	}
	all.by[r.Name] = r
	return nil
}

// knownError is an error of a kind with a text that clients look for, as
// unknownModel is.
type knownError struct {
	kind error
	text string
}

func (e knownError) Error() string { return e.text }
func (e knownError) Unwrap() error { return e.kind }

func known(kind error, format string, args ...any) error {
	return knownError{kind, fmt.Sprintf(format, args...)}
}

// errExists is the error for a name that is in use.
var errExists = fmt.Errorf("it is there: %w", oip.ErrMessage)

// list returns the region of a name, or all of them for "".
func (all *regions) list(name string) ([]*region, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if name == "" {
		return slices.SortedFunc(maps.Values(all.by), func(a, b *region) int { return cmp.Compare(a.Name, b.Name) }), nil
	}
	if r := all.by[name]; r != nil {
		return []*region{r}, nil
	}
	return nil, unknownRegion(name)
}

func unknownRegion(name string) error {
	return known(ErrNotFound, "Unable to find system shared memory region: '%.1024s'", name)
}

// remove forgets the region of a name, or all of them for "". Requests that use
// one go on.
func (all *regions) remove(name string) error {
	all.mu.Lock()
	defer all.mu.Unlock()
	var err error
	for n, r := range all.by {
		if name != "" && name != n {
			continue
		}
		delete(all.by, n)
		r.removed = true
		if r.users == 0 {
			err = errors.Join(err, r.file.Close())
		}
	}
	return err
}

// use returns a region, which stays open until done.
func (all *regions) use(name string) (*region, error) {
	all.mu.Lock()
	defer all.mu.Unlock()
	r := all.by[name]
	if r == nil {
		return nil, unknownRegion(name)
	}
	r.users++
	return r, nil
}

func (r *region) done() {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	if r.users--; r.users == 0 && r.removed {
		_ = r.file.Close() // nothing was written that could be lost
	}
}

// useRegions finds the regions that the request names, and checks that they
// have the bytes that it says.
func (q *request) useRegions() error {
	for _, in := range q.Inputs {
		if in.Region != nil {
			if err := q.useRegion(in.Region); err != nil {
				return fmt.Errorf("input '%s': %w", in.Name, err)
			}
		}
	}
	for _, o := range q.outputs {
		if o.Region != nil {
			if err := q.useRegion(o.Region); err != nil {
				return fmt.Errorf("output '%s': %w", o.Name, err)
			}
		}
	}
	return nil
}

func (q *request) useRegion(part *oip.Region) error {
	s := q.server
	if !s.config.SharedMemory {
		return errNoRegions
	}
	r := q.regions[part.Name]
	if r == nil {
		var err error
		if r, err = s.regions.use(part.Name); err != nil {
			return err
		}
		if q.regions == nil {
			q.regions = map[string]*region{}
		}
		q.regions[part.Name] = r
	}
	if part.Size > r.Size || part.Offset > r.Size-part.Size {
		return known(oip.ErrMessage, "Invalid offset + byte size for shared memory region: '%s': got %d bytes at %d, want at most its %d bytes", r.Name, part.Size, part.Offset, r.Size)
	}
	return nil
}

// read reads bytes at an offset in the region, which were checked to be in it.
func (r *region) read(dst []byte, offset int64) error {
	_, err := r.file.ReadAt(dst, r.Offset+offset)
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("shared memory region '%s' ends before its %d bytes: it was truncated: %w", r.Name, r.Size, oip.ErrMessage)
	}
	return err
}

// write writes an output into its part of the region.
func (r *region) write(data []byte, part *oip.Region) error {
	if int64(len(data)) > part.Size {
		return fmt.Errorf("shared memory size specified with the request for output should be at least %d bytes, got %d: %w", len(data), part.Size, oip.ErrMessage)
	}
	// A write behind its end would make it longer.
	info, err := r.file.Stat()
	if err != nil {
		return err
	}
	if at := r.Offset + part.Offset; at+int64(len(data)) > info.Size() {
		return fmt.Errorf("shared memory region '%s' ends before its %d bytes: it was truncated: %w", r.Name, r.Size, oip.ErrMessage)
	}
	_, err = r.file.WriteAt(data, r.Offset+part.Offset)
	return err
}

// regionRoutes adds the pages of shared memory. Of devices' memory there are no
// regions: clients that forget them first are not refused.
func (s *Server) regionRoutes(handle func(pattern string, f func(w http.ResponseWriter, r *http.Request) error)) {
	status := func(w http.ResponseWriter, r *http.Request) error {
		list, err := s.regions.list(r.PathValue("region"))
		if err != nil {
			return err
		}
		if list == nil {
			list = []*region{}
		}
		return answerJSON(w, http.StatusOK, list)
	}
	unregister := func(w http.ResponseWriter, r *http.Request) error {
		if err := s.regions.remove(r.PathValue("region")); err != nil {
			return err
		}
		return answerText(w, http.StatusOK, nil)
	}
	noStatus := func(w http.ResponseWriter, r *http.Request) error {
		if name := r.PathValue("region"); name != "" {
			return unknownDeviceRegion(name)
		}
		return answerJSON(w, http.StatusOK, []any{})
	}
	nothing := func(w http.ResponseWriter, _ *http.Request) error { return answerText(w, http.StatusOK, nil) }
	handle("GET /v2/systemsharedmemory/status", status)
	handle("GET /v2/systemsharedmemory/region/{region}/status", status)
	handle("POST /v2/systemsharedmemory/unregister", unregister)
	handle("POST /v2/systemsharedmemory/region/{region}/unregister", unregister)
	handle("POST /v2/systemsharedmemory/region/{region}/register", func(w http.ResponseWriter, r *http.Request) error {
		var wanted struct {
			Key    string `json:"key"`
			Offset int64  `json:"offset"`
			Size   int64  `json:"byte_size"`
		}
		err := s.control(w, r, &wanted)
		if err == nil {
			err = s.register(r, r.PathValue("region"), wanted.Key, wanted.Offset, wanted.Size)
		}
		if err != nil {
			return err
		}
		return answerText(w, http.StatusOK, nil)
	})
	handle("GET /v2/cudasharedmemory/status", noStatus)
	handle("GET /v2/cudasharedmemory/region/{region}/status", noStatus)
	handle("POST /v2/cudasharedmemory/unregister", nothing)
	handle("POST /v2/cudasharedmemory/region/{region}/unregister", nothing)
	handle("POST /v2/cudasharedmemory/region/{region}/register", func(_ http.ResponseWriter, r *http.Request) error {
		return noDeviceRegion(r.PathValue("region"))
	})
}

func unknownDeviceRegion(name string) error {
	return known(ErrNotFound, "Unable to find cuda shared memory region: '%.1024s'", name)
}

// noDeviceRegion is the error for a region of a device's memory.
func noDeviceRegion(name string) error {
	return known(oip.ErrMessage, "failed to register CUDA shared memory region: '%.1024s', GPUs not supported", name)
}
