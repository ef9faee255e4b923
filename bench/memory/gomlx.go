package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/gomlx/gomlx/backends"
	_ "github.com/gomlx/gomlx/backends/simplego"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/tensors"
)

// gomlxChain runs the chain in gomlx, on its backend in pure Go, and counts its
// allocations on the Go heap. The backend keeps its buffers, so the total is
// the peak.
func gomlxChain() (taken, error) {
	b, err := backends.NewWithConfig("go")
	if err != nil {
		return taken{}, err
	}
	defer b.Finalize()
	e, err := graph.NewExec(b, func(x *graph.Node) *graph.Node {
		zero := graph.ScalarZero(x.Graph(), x.DType())
		for range count {
			x = graph.Max(x, zero)
		}
		return x
	})
	if err != nil {
		return taken{}, err
	}
	run := func(rows, columns int) (int64, error) {
		data := make([]float32, rows*columns)
		for i := range data {
			data[i] = -1
		}
		x := tensors.FromFlatDataAndDimensions(data, rows, columns)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		y, err := e.Exec1(x)
		if err != nil {
			return 0, err
		}
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc), check(y)
	}
	if _, err := run(1, 1); err != nil {
		return taken{}, err
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	n, err := run(side, side)
	return taken{Engine: "gomlx, simplego", Version: version("github.com/gomlx/gomlx"), Input: 4 * side * side, Taken: n}, err
}

func check(y *tensors.Tensor) error {
	var most float32
	err := tensors.ConstFlatData(y, func(data []float32) {
		for _, v := range data {
			most = max(most, v)
		}
	})
	if err == nil && most != 0 {
		err = fmt.Errorf("gomlx: got %v, want 0", most)
	}
	return err
}

// version is that of a module in this build.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return ""
}
