//go:build invariants

package memory

import (
	"fmt"
	"strings"
	"testing"
)

func TestWriteAfterTheEndIsFound(t *testing.T) {
	c := idle(t)
	m := mustObtain(t, 64<<10)
	if err := c.put(m); err != nil {
		t.Fatal(err)
	}
	m[1000] = 1
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, "BUG: memory: byte 1000") {
			t.Errorf("got %s, want a report of byte 1000", got)
		}
	}()
	c.take(64 << 10)
}
