package driver_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
)

// TestRealDriver runs the tests of all drivers on NVIDIA's, where there is one.
func TestRealDriver(t *testing.T) {
	d, err := driver.Open("")
	if err != nil {
		t.Skipf("no CUDA driver: %v", err)
	}
	if strings.HasPrefix(d.Name(), "test driver") {
		t.Skipf("%s is not NVIDIA's", d.Name())
	}
	if err := d.Init(); errors.Is(err, driver.NoDevice) {
		t.Skipf("no GPU: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	drivertest.Run(t, d)
}
