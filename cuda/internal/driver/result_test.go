package driver_test

import (
	"errors"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

func TestFail(t *testing.T) {
	if err := driver.Fail("cuMemAlloc", driver.Success); err != nil {
		t.Errorf("Fail of success: %v", err)
	}
	err := driver.Fail("cuMemAlloc", driver.OutOfMemory)
	if got, want := err.Error(), "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, driver.OutOfMemory) || errors.Is(err, driver.InvalidValue) {
		t.Errorf("errors.Is does not test the result of %v", err)
	}
	var e *driver.Error
	if !errors.As(err, &e) || e.Result != driver.OutOfMemory || e.Symbol != "CUDA_ERROR_OUT_OF_MEMORY" {
		t.Errorf("got %#v, want the call's Error", err)
	}
	err = driver.Fail("cuInit", 12345)
	if got, want := err.Error(), "cuInit: unknown result (12345): this result is not documented"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
