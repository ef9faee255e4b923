package memory

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync/atomic"
)

const profileDepth = 32

var profiling atomic.Bool

// SetProfiling turns the recording of allocation sites, for [WriteProfile], on
// or off and returns the previous setting. It costs about a microsecond and 300
// bytes of the Go heap for each buffer.
func SetProfiling(on bool) (old bool) { return profiling.Swap(on) }

// WriteProfile writes the live buffers by allocation site, as bytes and as
// counts, in the format of go tool pprof. Imported bytes are not included.
// Buffers made while profiling was off are listed under one name. To serve it
// beside the profiles of package net/http/pprof:
//
//	http.HandleFunc("/debug/pprof/tenure", func(w http.ResponseWriter, _ *http.Request) { memory.WriteProfile(w) })
func WriteProfile(w io.Writer) error {
	if w == nil {
		return fmt.Errorf("memory: profile: got no writer, want one: %w", os.ErrInvalid)
	}
	type sample struct {
		stack          []uintptr
		purpose        string
		bytes, buffers int64
	}
	samples := map[string]*sample{}
	for _, s := range live.all() {
		state := s.state.Load()
		if state&holdersMask == 0 || s.purpose == noPurpose {
			continue
		}
		purpose := s.purpose.String()
		if s.remote != nil {
			purpose += " on " + s.remote.Device.String()
		}
		key := fmt.Sprint(purpose, s.stack)
		if samples[key] == nil {
			samples[key] = &sample{stack: s.stack, purpose: purpose}
		}
		samples[key].bytes += int64(s.size)
		samples[key].buffers++
	}
	p := newProfile()
	keys := make([]string, 0, len(samples))
	for key := range samples {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		s := samples[key]
		p.sample(s.stack, s.bytes, s.buffers, s.purpose)
	}
	_, err := w.Write(p.finish())
	return err
}

// profile is a message of the pprof format under construction; profile.proto of
// github.com/google/pprof has the numbers of its fields.
type profile struct {
	out       message
	strings   map[string]int64
	table     []string
	locations map[uintptr]uint64
	functions map[string]uint64
}

func newProfile() *profile {
	p := &profile{strings: map[string]int64{"": 0}, table: []string{""}, locations: map[uintptr]uint64{}, functions: map[string]uint64{}}
	for _, kind := range [2][2]string{{"buffers", "count"}, {"bytes", "bytes"}} {
		var m message
		m.number(1, p.text(kind[0]))
		m.number(2, p.text(kind[1]))
		p.out.sub(1, m)
	}
	p.out.number(14, p.text("bytes")) // the default sample type
	return p
}

// text returns the number of a string in the table.
func (p *profile) text(s string) int64 {
	if _, ok := p.strings[s]; !ok {
		p.strings[s] = int64(len(p.table))
		p.table = append(p.table, s)
	}
	return p.strings[s]
}

func (p *profile) sample(stack []uintptr, bytes, buffers int64, purpose string) {
	var m message
	if len(stack) == 0 {
		m.number(1, int64(p.location(0, []runtime.Frame{{Function: "allocated while profiling was off"}})))
	}
	for _, pc := range stack {
		frames := runtime.CallersFrames([]uintptr{pc})
		var lines []runtime.Frame // innermost first, including inlined calls
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			lines = append(lines, f)
		}
		m.number(1, int64(p.location(pc, lines)))
	}
	m.number(2, buffers)
	m.number(2, bytes)
	var label message
	label.number(1, p.text("purpose"))
	label.number(2, p.text(purpose))
	m.sub(3, label)
	p.out.sub(2, m)
}

func (p *profile) location(pc uintptr, lines []runtime.Frame) uint64 {
	if id, ok := p.locations[pc]; ok {
		return id
	}
	id := uint64(len(p.locations) + 1)
	p.locations[pc] = id
	var m message
	m.number(1, int64(id))
	m.number(3, int64(pc))
	for _, f := range lines {
		var line message
		line.number(1, int64(p.function(f)))
		line.number(2, int64(f.Line))
		m.sub(4, line)
	}
	p.out.sub(4, m)
	return id
}

func (p *profile) function(f runtime.Frame) uint64 {
	if id, ok := p.functions[f.Function]; ok {
		return id
	}
	id := uint64(len(p.functions) + 1)
	p.functions[f.Function] = id
	var m message
	m.number(1, int64(id))
	m.number(2, p.text(f.Function))
	m.number(4, p.text(f.File))
	p.out.sub(5, m)
	return id
}

func (p *profile) finish() []byte {
	for _, s := range p.table {
		p.out.bytes(6, []byte(s))
	}
	return p.out
}

// message is a protocol buffer under construction.
type message []byte

func (m *message) number(field int, v int64) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3)
	*m = binary.AppendUvarint(*m, uint64(v))
}

func (m *message) bytes(field int, b []byte) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|2)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) sub(field int, inner message) { m.bytes(field, inner) }

// callers returns the stack of an allocation, starting at the caller of this
// package's function.
func callers() []uintptr {
	var pcs [profileDepth]uintptr
	n := runtime.Callers(4, pcs[:]) // Callers, callers, publish, and Alloc or a similar function
	return slices.Clone(pcs[:n])
}
