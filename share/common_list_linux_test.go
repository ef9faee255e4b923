package share

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestListCommon: the holders are listed, also while some are stopped and after
// they were killed.
func TestListCommon(t *testing.T) {
	memorytest.Check(t)
	dir := commonDir(t)
	mustList := func() []CommonBytes {
		t.Helper()
		list, err := ListCommon(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	fds, _ := counts(t)
	if list := mustList(); len(list) != 0 {
		t.Errorf("got %v, want nothing", list)
	}
	here, twice := mustCommon(t, keyOf("list"), true), mustCommon(t, keyOf("list"), false)
	a, b := startChild(t), startChild(t)
	for _, c := range []*child{a, b} {
		c.ask(t, "get list")
	}
	b.ask(t, "get another")
	// holders are by number, and so are ours.
	holders := func(silent int, pids ...int) (list []CommonHolder) {
		slices.Sort(pids)
		for _, pid := range pids {
			list = append(list, CommonHolder{PID: pid, Command: commandOf(os.Getpid()), Silent: pid == silent})
		}
		return list
	}
	size := len(here.Bytes()[:cap(here.Bytes())])
	size = (size + 4095) / 4096 * 4096
	wants := func(when string, want ...CommonBytes) {
		t.Helper()
		slices.SortFunc(want, func(a, b CommonBytes) int { return strings.Compare(a.Key, b.Key) })
		eventually(t, func() string { // one that does not get a processor for seconds is listed as silent, and then answers again
			if got := mustList(); !reflect.DeepEqual(got, want) {
				return fmt.Sprintf("%s: got %+v, want %+v", when, got, want)
			}
			return ""
		})
	}
	list, another := keyOf("list").String(), keyOf("another").String()
	pa, pb := a.cmd.Process.Pid, b.cmd.Process.Pid
	wants("all answer", CommonBytes{list, size, holders(0, os.Getpid(), pa, pb)}, CommonBytes{another, size, holders(0, pb)})

	b.stop(t)
	wants("one is stopped", CommonBytes{list, size, holders(0, os.Getpid(), pa)}, CommonBytes{list[:16], 0, holders(pb, pb)}, CommonBytes{another[:16], 0, holders(pb, pb)})
	b.kill()
	wants("it is killed", CommonBytes{list, size, holders(0, os.Getpid(), pa)})
	if left, _ := filepath.Glob(filepath.Join(dir, another[:16]+"*")); len(left) != 0 {
		t.Errorf("got %v left of what only the killed one had, want nothing", left)
	}
	mustFree(t, here)
	mustFree(t, twice)
	wants("ours is given back", CommonBytes{list, size, holders(0, pa)})
	a.kill()
	wants("all have ended")
	if f, m := counts(t); f > fds+2 || m != 0 { // the network poller's
		t.Errorf("got %d descriptors and %d mappings, want %d and none", f, m, fds)
	}

	why := errors.New("the list is not wanted any more")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if list, err := ListCommon(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, why) || list != nil {
		t.Errorf("got %v, %v, want the context's end and why", list, err)
	}
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Mkdir(filepath.Join(open, "common"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := ListCommon(t.Context(), InDir(open)); err == nil {
		t.Error("got no error for a folder that others may enter, want one")
	}
}
