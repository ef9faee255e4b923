package exec

import (
	"context"
	"errors"
	"math"
	"os"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
)

const steps = `func @main(%x: f32[256,1024], %c: bool[]) -> (f32[256,256]) {
	%a = relu(%x)
	%b = exp(%a)
	%s = softmax(donate %b)
	%t = transpose(%a) {perm = [1, 0]}
	%m = matmul(%s, %t)
	%r = if(%c) {
		%p = neg(donate %m)
		return %p
	} {
		%q = tanh(donate %m)
		return %q
	}
	%y = sigmoid(donate %r)
	return %y
}`

// compiled compiles a program without weights.
func compiled(t testing.TB, text string, threads int) *Executable {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	e, err := Compile(context.Background(), p, ir.WeightMap{}, Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// floats returns n aligned float32s as bytes.
func floats(n int, v float32) []byte {
	data := make([]float32, n)
	for i := range data {
		data[i] = v
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), 4*n)
}

// TestStepLoopAllocatesNothing pins zero allocations per run, whichever way a
// branch goes.
func TestStepLoopAllocatesNothing(t *testing.T) {
	if invariant.Race {
		t.Skip("skipped: the race detector allocates")
	}
	memorytest.Check(t)
	for _, threads := range []int{1, 2} {
		e := compiled(t, steps, threads)
		pool := compute.NewPool(threads)
		var slot Slot
		inputs := [][]byte{floats(256*1024, 0.5), {0}}
		outputs := [][]byte{make([]byte, 256*256*4)}
		step := func() {
			r, err := slot.Runner(e)
			if err != nil {
				t.Fatal(err)
			}
			inputs[1][0] ^= 1
			if err := r.Run(pool, nil, inputs, outputs); err != nil {
				t.Fatal(err)
			}
		}
		// The count is the whole process's, and the runtime's own goroutines
		// may allocate during one try.
		allocs := testing.AllocsPerRun(10, step)
		for range 9 {
			allocs = min(allocs, testing.AllocsPerRun(10, step))
		}
		if allocs != 0 {
			t.Errorf("%d threads: got %v allocations per run, want none", threads, allocs)
		}
		pool.Close()
		if err := slot.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestArenaIsThePromise holds the mapping to the plan: its size to the byte,
// its resident pages to the size rounded up, the same on run 2 and run 100.
func TestArenaIsThePromise(t *testing.T) {
	memorytest.Check(t)
	e := compiled(t, steps, 2)
	pool := compute.NewPool(2)
	defer pool.Close()
	var slot Slot
	defer slot.Release()
	inputs := [][]byte{floats(256*1024, 0.5), {1}}
	outputs := [][]byte{make([]byte, 256*256*4)}
	resident := 0
	for run := 1; run <= 100; run++ {
		r, err := slot.Runner(e)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Run(pool, nil, inputs, outputs); err != nil {
			t.Fatal(err)
		}
		if run != 2 && run != 100 {
			continue
		}
		if got := int64(slot.arena.Len()); got != e.ArenaBytes {
			t.Errorf("run %d: got an arena of %d bytes, want %d", run, got, e.ArenaBytes)
		}
		got, err := slot.arena.Resident()
		if errors.Is(err, errors.ErrUnsupported) {
			t.Skipf("skipped: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		page := os.Getpagesize()
		if limit := (int(e.ArenaBytes) + page - 1) / page * page; got > limit {
			t.Errorf("run %d: got %d bytes resident, want at most %d", run, got, limit)
		}
		if run == 100 && got != resident {
			t.Errorf("got %d bytes resident on run 100 and %d on run 2, want the same", got, resident)
		}
		resident = got
	}
}

// TestSlotFollowsThePlan shrinks and grows the arena with the plan that runs.
func TestSlotFollowsThePlan(t *testing.T) {
	memorytest.Check(t)
	large := compiled(t, steps, 1)
	small := compiled(t, `func @main(%x: f32[64]) -> (f32[32]) {
		%a, %b = split(%x) {num_outputs = 2}
		%c = exp(%a)
		%d = neg(%b)
		%e = mul(%c, %d)
		%f = add(%e, %c)
		return %f
	}`, 1)
	var slot Slot
	for _, e := range []*Executable{large, small, large} {
		r, err := slot.Runner(e)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(slot.arena.Len()); got != e.ArenaBytes {
			t.Errorf("got an arena of %d bytes, want %d", got, e.ArenaBytes)
		}
		if again, _ := slot.Runner(e); again != r {
			t.Error("the same executable got another runner")
		}
	}
	slot.Keep(1, func(e *Executable) bool { return e == small })
	if len(slot.runners) != 1 || slot.attached != nil {
		t.Errorf("got %d runners, want the one that is kept, and none attached", len(slot.runners))
	}
	if err := slot.Release(); err != nil {
		t.Fatal(err)
	}
}

// watched is a kernel that says of each tile that it begins.
type watched struct {
	compute.Kernel
	begins func(tile int)
}

func (k watched) Tile(t *compute.Task, tile int, scratch []byte) {
	k.begins(tile)
	k.Kernel.Tile(t, tile, scratch)
}

// TestStopInsideAStep closes done while one product runs: the run ends before
// the product does, and says where.
func TestStopInsideAStep(t *testing.T) {
	memorytest.Check(t)
	const n = 1024
	e := compiled(t, `func @main(%x: f32[1024,1024]) -> (f32[1024,1024]) {
		%y = matmul(%x, %x)
		return %y
	}`, 1)
	pool := compute.NewPool(1)
	defer pool.Close()
	var slot Slot
	defer slot.Release()
	r, err := slot.Runner(e)
	if err != nil {
		t.Fatal(err)
	}
	// The first tile ends the run: those after it must not be computed.
	done := make(chan struct{})
	task := r.steps[0].task
	tiles := 0
	task.Kernel = watched{task.Kernel, func(int) {
		if tiles == 0 {
			close(done)
		}
		tiles++
	}}
	outputs := [][]byte{floats(n*n, float32(math.NaN()))}
	err = r.Run(pool, done, [][]byte{floats(n*n, 1)}, outputs)
	var part *PartError
	if !errors.Is(err, compute.ErrStopped) || !errors.As(err, &part) || part.Op != "matmul" {
		t.Fatalf("got %v, want a cancelled matmul", err)
	}
	if tiles == 0 || tiles >= task.Tiles {
		t.Errorf("got %d of %d tiles computed, want some and not all", tiles, task.Tiles)
	}
}

// TestWarmArenaIsResident finds every page of the arena in memory before the
// first run.
func TestWarmArenaIsResident(t *testing.T) {
	memorytest.Check(t)
	e := compiled(t, steps, 1)
	var slot Slot
	defer slot.Release()
	if err := slot.Warm(e); err != nil {
		t.Fatal(err)
	}
	got, err := slot.arena.Resident()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("skipped: %v", err)
	}
	if page := os.Getpagesize(); err != nil || got != (int(e.ArenaBytes)+page-1)/page*page {
		t.Errorf("got %d bytes resident, %v, want all %d", got, err, e.ArenaBytes)
	}
	r, err := slot.Runner(e)
	if err != nil || len(slot.runners) != 1 || slot.runners[e] != r {
		t.Errorf("got %d runners, %v, want the one of before", len(slot.runners), err)
	}
}
