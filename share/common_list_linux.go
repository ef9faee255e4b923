package share

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/internal/ended"
)

func listCommon(ctx context.Context, opts []Option) ([]CommonBytes, error) {
	dir, err := resolve(opts)
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "common")
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil // no process has ever had common bytes
	}
	folder, err := privateFolder(dir)
	if err != nil {
		return nil, err
	}
	removeStale(folder)
	copies := map[copyID]*CommonBytes{}
	var mu sync.Mutex
	var requests sync.WaitGroup
	for _, path := range socketsOf(folder, "") {
		requests.Go(func() {
			id, h, err := identify(ctx, path)
			if isNobody(err) {
				return // the process has ended since
			}
			mu.Lock()
			defer mu.Unlock()
			if copies[id] == nil {
				copies[id] = &CommonBytes{Key: id.key, Bytes: h.size}
			}
			copies[id].add(CommonHolder{PID: h.pid, Command: commandOf(h.pid), Silent: err != nil})
		})
	}
	requests.Wait()
	if ctx.Err() != nil {
		return nil, ended.Error(ctx)
	}
	return inOrder(copies), nil
}

// copyID distinguishes copies, including copies with the same key.
type copyID struct {
	key   string
	inode uint64
}

// identify returns the copy of a holder. For a holder that does not answer,
// only the name of its socket is known.
func identify(ctx context.Context, path string) (copyID, answer, error) {
	short, _, _ := strings.Cut(filepath.Base(path), ".")
	h, err := requestCopy(ctx, path)
	if err != nil {
		return copyID{key: short}, h, err
	}
	defer closeDescriptor(h.fd)
	var st unix.Stat_t
	if err := unix.Fstat(h.fd, &st); err != nil {
		return copyID{key: short}, h, err
	}
	h.size = int(st.Size)
	return copyID{h.key.String(), st.Ino}, h, nil
}

// add adds a holder, once even if it has the copy twice. A holder in another
// container has no process number here.
func (c *CommonBytes) add(h CommonHolder) {
	if h.PID == 0 || !slices.ContainsFunc(c.Holders, func(o CommonHolder) bool { return o.PID == h.PID }) {
		c.Holders = append(c.Holders, h)
	}
}

// inOrder sorts copies by key and holders by number.
func inOrder(copies map[copyID]*CommonBytes) (list []CommonBytes) {
	for _, c := range copies {
		slices.SortFunc(c.Holders, func(a, b CommonHolder) int { return cmp.Compare(a.PID, b.PID) })
		list = append(list, *c)
	}
	slices.SortFunc(list, func(a, b CommonBytes) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Holders[0].PID, b.Holders[0].PID))
	})
	return list
}
