package tenure

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
)

// sharing is what [WithSharedWeights] was called with.
type sharing struct{ where []share.Option }

// memory returns memory that processes share. It is the weights.Share of the
// model's store.
func (s *sharing) memory(ctx context.Context, key [sha256.Size]byte, size int, fill func([]byte) error) (*memory.Buffer, error) {
	b, _, err := share.Common(ctx, key, size, "shared weights", fill, s.where...)
	return b, err
}

// check reports why weights cannot be shared here, so that loading fails and
// not the first run.
func (s *sharing) check() error {
	err := share.CheckCommon(s.where...)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", err, ErrUnsupported)
	}
	if err != nil {
		return fmt.Errorf("shared weights: %w", err)
	}
	return nil
}

// WeightMemory is the memory that a model's weights take beside the pages of
// its file, in bytes: packed for the kernels, copied, or derived from others.
type WeightMemory struct {
	Private int64 // of this process
	Shared  int64 // one copy for all processes that load the model with [WithSharedWeights]
}

// WeightMemory returns the memory that the weights take now. Weights are packed
// when a session makes a plan. It may be called from any goroutine.
func (m *Model) WeightMemory() WeightMemory {
	var f WeightMemory
	if m.none() {
		return f
	}
	f.Private, f.Shared = m.file.Weights.InMemory()
	return f
}
