package fake_test

import (
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver/drivertest"
	"github.com/tenure-go/tenure/cuda/internal/fake"
)

// TestConformance runs the tests that the real driver passes.
func TestConformance(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  fake.Config
	}{
		{"eager", fake.Config{Devices: 2, Mode: fake.Eager}},
		{"lazy", fake.Config{Devices: 2, Mode: fake.Lazy}},
		{"random", fake.Config{Devices: 2, Seed: 1}},
		{"random again", fake.Config{Devices: 1, Seed: 2, ReuseAddresses: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := fake.New(c.cfg)
			fake.CheckLeaks(t, m)
			drivertest.Run(t, m)
			for _, r := range m.Reports() {
				if r.Kind != fake.Unordered { // one test reads what another stream may write
					t.Errorf("%s: %s", r.Kind, r.Text)
				}
			}
		})
	}
}
