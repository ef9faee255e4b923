package kernel_test

import (
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

func TestKernels(t *testing.T) { kerneltest.RunAll(t) }
