//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import (
	"strings"
	"unsafe"
)

// kernel says where a function comes from.
type kernel struct {
	ctx    Context
	module Module
}

// logSize is the longest log of the compiler that ModuleLoadData returns, for
// errors and for the rest each.
const logSize = 16 << 10

func (l *library) ModuleLoadData(ctx Context, ptx string) (m Module, log string, err error) {
	c := newCall()
	defer c.release()
	logs := new([2][logSize]byte)
	// outs[4:6] is CUjit_option[4], params is void *[4]: sizes are values,
	// not addresses.
	const n = 4
	options := (*[n]uint32)(unsafe.Pointer(&c.outs[4]))
	*options = [n]uint32{jitErrorLogBuffer, jitErrorLogBufferSize, jitInfoLogBuffer, jitInfoLogBufferSize}
	c.params = append(c.params[:0], uintptr(unsafe.Pointer(&logs[0])), logSize, uintptr(unsafe.Pointer(&logs[1])), logSize)
	err = l.err(l.inContext(c, ctx, cuModuleLoadDataEx, c.out(0), c.string(ptx), n, c.out(4), uintptr(unsafe.Pointer(&c.params[0]))))
	log = strings.TrimSpace(cstring(logs[0][:]) + "\n" + cstring(logs[1][:]))
	if err != nil {
		return 0, log, err
	}
	return Module(c.outs[0]), log, nil
}

func (l *library) ModuleUnload(ctx Context, m Module) error {
	if err := l.in(ctx, cuModuleUnload, uintptr(m)); err != nil {
		return err
	}
	for f, k := range l.kernels.Range {
		if k.(kernel) == (kernel{ctx, m}) {
			l.kernels.Delete(f)
		}
	}
	return nil
}

func (l *library) ModuleGetFunction(ctx Context, m Module, name string) (Function, error) {
	c := newCall()
	defer c.release()
	if err := l.err(l.inContext(c, ctx, cuModuleGetFunction, c.out(0), uintptr(m), c.string(name))); err != nil {
		return 0, err
	}
	f := Function(c.outs[0])
	l.kernels.Store(f, kernel{ctx, m})
	return f, nil
}

// FuncGetAttribute runs in the context of the function's module. The driver
// may load the function for it, for which it needs one.
func (l *library) FuncGetAttribute(a FunctionAttribute, f Function) (int, error) {
	k, known := l.kernels.Load(f)
	if !known {
		return 0, l.err(outcome{cuFuncGetAttribute, InvalidHandle})
	}
	n, err := l.handle(k.(kernel).ctx, cuFuncGetAttribute, uintptr(a), uintptr(f))
	return int(int32(n)), err
}

func (l *library) LaunchKernel(ctx Context, f Function, grid, block Dim3, shared uint32, s Stream, args [][]byte) error {
	c := newCall()
	o := l.inContext(c, ctx, cuLaunchKernel, uintptr(f), uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
		uintptr(block.X), uintptr(block.Y), uintptr(block.Z), uintptr(shared), uintptr(s), c.parameters(args), 0)
	c.release()
	return l.err(o)
}
