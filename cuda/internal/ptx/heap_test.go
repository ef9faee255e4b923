package ptx_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/ptx"
)

// heap is a memory in one piece.
type heap struct {
	base    uint64
	data    []byte
	written []bool
}

func newHeap(n int) *heap {
	return &heap{base: 0x7000_0000_0000, data: make([]byte, n), written: make([]bool, n)}
}

func (h *heap) Bytes(address uint64, n int, _ bool) ([]byte, error) {
	if at := address - h.base; at <= uint64(len(h.data)) && uint64(n) <= uint64(len(h.data))-at {
		return h.data[at:][:n], nil
	}
	return nil, fmt.Errorf("got %d bytes at %#x, want some of [%#x, %#x)", n, address, h.base, h.base+uint64(len(h.data)))
}

func (h *heap) Written(address uint64, n int) bool {
	for _, w := range h.written[address-h.base:][:n] {
		if !w {
			return false
		}
	}
	return true
}

func (h *heap) MarkWritten(address uint64, n int) {
	for i := range n {
		h.written[address-h.base+uint64(i)] = true
	}
}

func arg(v uint64, n int) []byte { return binary.LittleEndian.AppendUint64(nil, v)[:n] }

// texts are the modules that the tests run. ptxas has to take each of them.
var texts = map[string]string{}

const header = ".version 7.4\n.target sm_80\n.address_size 64\n"

// text makes a module of one kernel, k, with the parameter out, an address in
// %out, and some registers.
func text(name, params, body string) string {
	if params != "" {
		params = ", " + params
	}
	s := header + ".visible .entry k(.param .u64 out" + params + `)
{
	.reg .pred %p<4>;
	.reg .b16 %h<4>;
	.reg .u32 %r<12>;
	.reg .s32 %s<4>;
	.reg .f32 %f<8>;
	.reg .u64 %rd<8>, %out;
	.reg .f64 %d<4>;
	ld.param.u64 %out, [out];
` + body + "\n\tret;\n}\n"
	if _, taken := texts[name]; taken {
		panic("BUG: two texts are named " + name)
	}
	texts[name] = s
	return s
}

func kernel(t testing.TB, text, name string) *ptx.Kernel {
	t.Helper()
	m, err := ptx.Parse(text)
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	k, err := m.Kernel(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// launch is one with races looked for.
func launch(h *heap, blocks, threads uint32, seed uint64, args ...[]byte) ptx.Launch {
	return ptx.Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}, Args: args, Memory: h, Seed: seed, Races: true}
}

// seeds are those that most tests run with.
var seeds = []uint64{0, 1, 2, 3, 12345}

// run runs the kernel k of a text with n bytes of memory, whose address is the
// first argument. Without findings it returns the memory.
func run(t *testing.T, text string, n int, blocks, threads uint32, seed uint64, args ...[]byte) *heap {
	t.Helper()
	h := newHeap(n)
	r, err := kernel(t, text, "k").Run(launch(h, blocks, threads, seed, append([][]byte{arg(h.base, 8)}, args...)...))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if err := r.Err(); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return h
}

func (h *heap) u32(i int) uint32 { return binary.LittleEndian.Uint32(h.data[4*i:]) }
func (h *heap) u64(i int) uint64 { return binary.LittleEndian.Uint64(h.data[8*i:]) }

// wantFault checks that an error is a fault with a reason that contains want.
func wantFault(t *testing.T, err error, line int, want string) {
	t.Helper()
	var f *ptx.Fault
	if !errors.As(err, &f) || !strings.Contains(f.Reason, want) || line > 0 && f.Line == 0 {
		t.Errorf("got the error %v, want a fault with %q", err, want)
	}
}
