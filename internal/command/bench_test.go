package command

import (
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// The goals of donation: against everything held, 90 % less on the chain, and
// 60 % less on a block and a layer.
func TestBenchMemory(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		build       func() *network
		total, peak float64 // percent less than held
	}{
		{reluChain, 90, 90}, {transformerLayer, 60, 60}, {resnetBlock, 60, 60},
	} {
		n := c.build()
		if testing.Short() && n.steps[0].op != "relu" {
			continue // minutes of convolutions under the race detector
		}
		row, err := measureMemory(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		saved := func(of, than int64) float64 { return 100 - 100*float64(of)/float64(than) }
		if got := saved(row.Donation.Total, row.Held.Total); got < c.total {
			t.Errorf("%s: donation takes %.1f%% less in total than held, want %v%%", n.name, got, c.total)
		}
		if got := saved(row.Donation.Peak, row.Held.Peak); got < c.peak {
			t.Errorf("%s: the peak of donation is %.1f%% less than held, want %v%%", n.name, got, c.peak)
		}
		if row.Held.Peak < row.Prompt.Peak || row.Prompt.Peak < row.Donation.Peak || row.Donation.Peak < row.Floor {
			t.Errorf("%s: got %+v, want held >= prompt >= donation >= floor", n.name, row)
		}
		if row.Planned.Peak != row.Promised || row.Planned.Total != row.Promised {
			t.Errorf("%s: the plan's run took %+v, want the %d bytes that it promised", n.name, row.Planned, row.Promised)
		}
		if saved(row.Planned.Peak, row.Held.Peak) < 60 {
			t.Errorf("%s: got %+v, want a plan of 60%% less than held", n.name, row)
		}
	}
}

// The floor of a chain in place is its one buffer, that of a sum that is needed
// twice both operands and the result.
func TestFloor(t *testing.T) {
	n := newNetwork("floor", 16)
	y := n.call("relu", nil, 0)
	z := n.call("add", nil, y, 0)
	n.call("mul", nil, z, y)
	row, err := measureMemory(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if row.Floor != 128 {
		t.Errorf("got a floor of %d bytes, want 128: x and relu(x) are needed at once", row.Floor)
	}
	if row.Held.Total != 4*64 || row.Donation.Total != 2*64 {
		t.Errorf("got %+v, want 256 bytes held in total, 128 with donation", row)
	}
}
