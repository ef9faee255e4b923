package tenure_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
)

// Numbers that come from a configuration and are too large are errors, and
// nothing was made of them.
func TestOptionsOutOfRange(t *testing.T) {
	m := modeltest.Load(t, digits)
	for want, opt := range map[string]tenure.SessionOption{
		"threads: got 1025, want at most 1024":                         tenure.WithThreads(1025),
		"concurrent runs: got 9223372036854775807, want at most 65536": tenure.WithMaxConcurrent(math.MaxInt),
	} {
		if _, err := m.NewSession(opt); err == nil || err.Error() != "new session: "+want {
			t.Errorf("got %v, want new session: %s", err, want)
		}
		if _, err := m.Plan(context.Background(), tenure.Shapes{"image": {1, 1, 8, 8}}, opt); err == nil || err.Error() != "plan: "+want {
			t.Errorf("got %v, want plan: %s", err, want)
		}
	}
	for _, w := range []tenure.Weights{-1, 3} {
		if _, err := tenure.Load(digits, tenure.WithWeights(w)); err == nil || !strings.Contains(err.Error(), "want Mapped, Read or Compressed") {
			t.Errorf("weights %d: got %v, want an error that lists what there is", w, err)
		}
	}
}
