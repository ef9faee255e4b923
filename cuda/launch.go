package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/kernels"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Module is code that the driver has compiled for a device.
type Module struct {
	d      *Device
	handle driver.Module

	mu     sync.Mutex
	closed bool
}

// Function is a kernel of a [Module].
type Function struct {
	m      *Module
	name   string
	handle driver.Function
}

// Compile compiles PTX text for the device. The error has what the compiler
// says. The caller closes the module.
func (d *Device) Compile(ptx string) (*Module, error) {
	if err := d.usable("compile"); err != nil {
		return nil, err
	}
	h, log, err := d.drv.ModuleLoadData(d.ctx, ptx)
	if err != nil {
		if log != "" {
			log = "\n" + log
		}
		return nil, fmt.Errorf("%w%s", d.fail("compile", err), log)
	}
	return &Module{d: d, handle: h}, nil
}

// Function returns the kernel of that name.
func (m *Module) Function(name string) (*Function, error) {
	if m == nil || m.d == nil {
		return nil, fmt.Errorf("cuda: function %q: got no module, want one of Device.Compile: %w", name, memory.ErrReleased)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fmt.Errorf("cuda: function %q: the module is closed: %w", name, memory.ErrReleased)
	}
	h, err := m.d.drv.ModuleGetFunction(m.d.ctx, m.handle, name)
	if err != nil {
		return nil, m.d.fail(fmt.Sprintf("function %q", name), err)
	}
	return &Function{m: m, name: name, handle: h}, nil
}

// Close unloads the module. Its functions must not be launched any more; work
// that was submitted still runs.
func (m *Module) Close() error {
	if m == nil || m.d == nil {
		return fmt.Errorf("cuda: close module: got none: %w", memory.ErrReleased)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return fmt.Errorf("cuda: close module: %w", memory.ErrReleased)
	}
	m.closed = true
	if err := m.d.drv.ModuleUnload(m.d.ctx, m.handle); err != nil {
		return m.d.fail("close module", err)
	}
	return nil
}

// Dim is the size of a grid or of a block. A size of 0 counts as 1.
type Dim struct{ X, Y, Z int }

func (d Dim) of(what string) (driver.Dim3, error) {
	var out [3]uint32
	for i, n := range [3]int{d.X, d.Y, d.Z} {
		if n < 0 || n > math.MaxInt32 {
			return driver.Dim3{}, fmt.Errorf("got a %s of %d x %d x %d, want sizes of 0 to %d: %w", what, d.X, d.Y, d.Z, math.MaxInt32, tensor.ErrShape)
		}
		out[i] = max(uint32(n), 1)
	}
	return driver.Dim3{X: out[0], Y: out[1], Z: out[2]}, nil
}

// Arg is a parameter of a kernel.
type Arg struct {
	x     tensor.Operand
	write bool
	value []byte
	err   error
}

// In passes the address of element [0,...,0] of x, which the kernel reads.
func In(x *tensor.Tensor) Arg { return Arg{x: x} }

// Out passes the address of element [0,...,0] of x, which the kernel writes, or
// reads and writes. x must be exclusive, and stays the same tensor.
func Out(x *tensor.Tensor) Arg {
	if x == nil {
		return Arg{x: x}
	}
	return Arg{x: x.Donate(), write: true}
}

// Value passes a number: a Go integer or float of fixed size, as the
// parameter's type of the same size.
func Value(v any) Arg {
	data := numberBytes(v)
	if data == nil {
		return Arg{err: fmt.Errorf("got a value of type %T, want a number of fixed size: %w", v, tensor.ErrDType)}
	}
	return Arg{value: data}
}

// numberBytes returns the bytes of a number of fixed size in the order of
// devices, nil if v is none.
func numberBytes(v any) []byte {
	switch reflect.ValueOf(v).Kind() {
	case reflect.Bool, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		data, err := binary.Append(nil, binary.LittleEndian, v)
		if err == nil {
			return data
		}
	}
	return nil
}

// Launch submits a kernel. shared is the bytes of dynamic shared memory. The
// number and sizes of the arguments must be those of the kernel: the driver
// does not check them.
func (s *Stream) Launch(f *Function, grid, block Dim, shared int, args ...Arg) error {
	if err := s.none("launch"); err != nil {
		return err
	}
	if f == nil || f.m == nil || f.m.d != s.d {
		return fmt.Errorf("cuda: launch on %s: got a function of another device or none, want one that was compiled for it: %w", s.d, tensor.ErrDevice)
	}
	op := tensor.NewOperation("launch " + f.name).OnDevices()
	g, err := grid.of("grid")
	if err != nil {
		return fmt.Errorf("cuda: %s: %w", op.Name(), err)
	}
	b, err := block.of("block")
	if err != nil {
		return fmt.Errorf("cuda: %s: %w", op.Name(), err)
	}
	if shared < 0 || shared > math.MaxInt32 {
		return fmt.Errorf("cuda: %s: got %d bytes of shared memory, want 0 or more: %w", op.Name(), shared, tensor.ErrShape)
	}
	var list []tensor.Operand
	for i, a := range args {
		if a.err != nil {
			return fmt.Errorf("cuda: %s: argument %d: %w", op.Name(), i, a.err)
		}
		if a.value == nil {
			list = append(list, a.x)
		}
	}
	var o operands
	if err := o.begin(s, op, list...); err != nil {
		return err
	}
	defer o.taken.Rollback()
	values := make([][]byte, len(args))
	k := 0
	for i, a := range args {
		if values[i] = a.value; a.value != nil {
			continue
		}
		if a.write {
			if err := o.taken.Stay(k); err != nil {
				return fmt.Errorf("cuda: %w", err)
			}
		}
		o.uses[k].write = a.write
		values[i] = binary.LittleEndian.AppendUint64(nil, o.at(k))
		k++
	}
	err = s.submit(op.Name(), o.uses, func() error {
		return s.d.drv.LaunchKernel(s.d.ctx, f.handle, g, b, uint32(shared), s.handle, values)
	})
	if err != nil {
		return err
	}
	o.taken.Commit()
	return nil
}

// Make returns a tensor on the stream's device whose values are undefined, for
// work of the stream that writes every element.
func (s *Stream) Make(dt dtype.DType, sh *shape.Shape) (*tensor.Tensor, error) {
	if err := s.none("make"); err != nil {
		return nil, err
	}
	return tensor.Make(s.Source(memory.Activations), dt, sh)
}

// Source returns the device's arena as a source of buffers that s will write
// first: it prefers bytes for which s need not wait.
func (s *Stream) Source(p memory.Purpose) memory.Source { return streamSource{s, p} }

type streamSource struct {
	s *Stream
	p memory.Purpose
}

func (f streamSource) Alloc(bytes int) (*memory.Buffer, error) {
	if err := f.s.none("allocate"); err != nil {
		return nil, err
	}
	return f.s.d.arena.alloc(bytes, f.p, f.s)
}

// Zeros returns a tensor of zeros on the stream's device.
func (s *Stream) Zeros(dt dtype.DType, sh *shape.Shape) (*tensor.Tensor, error) {
	t, err := s.Make(dt, sh)
	if err != nil || t.NumBytes() == 0 {
		return t, err
	}
	buf, at, err := t.Hold()
	if err != nil {
		_ = t.Release()
		return nil, err
	}
	defer buf.Release()
	b := blockOf(buf.Remote())
	if err := s.submit("zeros", []use{{b, true}}, func() error {
		return s.d.drv.MemsetD8Async(s.d.ctx, b.pointer()+driver.Pointer(at), 0, uint64(t.NumBytes()), s.handle)
	}); err != nil {
		_ = t.Release()
		return nil, err
	}
	return t, nil
}

// modules is the kernels of this package on a device, compiled when they are
// first used.
type modules struct {
	mu        sync.Mutex
	loaded    map[string]driver.Module // by the name of the text
	functions map[*kernels.Kernel]driver.Function
}

// function returns a kernel of this package.
func (d *Device) function(k *kernels.Kernel) (driver.Function, error) {
	m := &d.code
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.functions[k]; f != 0 {
		return f, nil
	}
	if m.functions == nil {
		m.functions, m.loaded = map[*kernels.Kernel]driver.Function{}, map[string]driver.Module{}
	}
	if m.loaded[k.Module] == 0 {
		text, err := kernels.Source(k.Module)
		if err != nil {
			return 0, err
		}
		h, log, err := d.drv.ModuleLoadData(d.ctx, text)
		if err != nil {
			return 0, fmt.Errorf("compile the kernels of %s: %w\n%s", k.Module, err, log)
		}
		m.loaded[k.Module] = h
	}
	f, err := d.drv.ModuleGetFunction(d.ctx, m.loaded[k.Module], k.Name)
	if err != nil {
		return 0, err
	}
	m.functions[k] = f
	return f, nil
}

func (m *modules) unload(d *Device) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	for _, h := range m.loaded {
		errs = append(errs, d.drv.ModuleUnload(d.ctx, h))
	}
	m.loaded, m.functions = nil, nil
	return errors.Join(errs...)
}
