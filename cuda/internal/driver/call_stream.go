//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import "math"

// handle calls a function in a context that writes a handle or an address
// through its first parameter.
func (l *library) handle(ctx Context, f function, args ...uintptr) (uint64, error) {
	c := newCall()
	defer c.release()
	if err := l.err(l.inContext(c, ctx, f, append([]uintptr{c.out(0)}, args...)...)); err != nil {
		return 0, err
	}
	return c.outs[0], nil
}

// done is the answer of a query: NotReady is no error.
func (l *library) done(o outcome) (bool, error) {
	if o.r == NotReady {
		return false, nil
	}
	return o.r == Success, l.err(o)
}

func (l *library) StreamCreate(ctx Context, flags StreamFlags, priority int) (Stream, error) {
	s, err := l.handle(ctx, cuStreamCreateWithPriority, uintptr(flags), uintptr(priority))
	return Stream(s), err
}

func (l *library) StreamDestroy(ctx Context, s Stream) error {
	return l.in(ctx, cuStreamDestroy, uintptr(s))
}

func (l *library) StreamSynchronize(ctx Context, s Stream) error {
	return l.in(ctx, cuStreamSynchronize, uintptr(s))
}

func (l *library) StreamQuery(ctx Context, s Stream) (bool, error) {
	return l.done(l.query(ctx, cuStreamQuery, uintptr(s)))
}

func (l *library) StreamWaitEvent(ctx Context, s Stream, e Event) error {
	return l.in(ctx, cuStreamWaitEvent, uintptr(s), uintptr(e), 0)
}

func (l *library) LaunchHostFunc(ctx Context, s Stream, fn, arg uintptr) error {
	return l.in(ctx, cuLaunchHostFunc, uintptr(s), fn, arg)
}

func (l *library) EventCreate(ctx Context, flags EventFlags) (Event, error) {
	e, err := l.handle(ctx, cuEventCreate, uintptr(flags))
	return Event(e), err
}

func (l *library) EventDestroy(ctx Context, e Event) error {
	return l.in(ctx, cuEventDestroy, uintptr(e))
}

func (l *library) EventRecord(ctx Context, e Event, s Stream) error {
	return l.in(ctx, cuEventRecord, uintptr(e), uintptr(s))
}

func (l *library) EventQuery(ctx Context, e Event) (bool, error) {
	return l.done(l.query(ctx, cuEventQuery, uintptr(e)))
}

func (l *library) EventSynchronize(ctx Context, e Event) error {
	return l.in(ctx, cuEventSynchronize, uintptr(e))
}

func (l *library) EventElapsedTime(ctx Context, from, to Event) (float32, error) {
	ms, err := l.handle(ctx, cuEventElapsedTime, uintptr(from), uintptr(to))
	return math.Float32frombits(uint32(ms)), err
}

// StreamBeginCapture captures in the relaxed mode: the others tie a capture to
// the thread that began it, and a goroutine changes threads.
func (l *library) StreamBeginCapture(ctx Context, s Stream) error {
	return l.in(ctx, cuStreamBeginCapture, uintptr(s), captureRelaxed)
}

func (l *library) StreamEndCapture(ctx Context, s Stream) (Graph, error) {
	c := newCall()
	defer c.release()
	if err := l.err(l.inContext(c, ctx, cuStreamEndCapture, uintptr(s), c.out(0))); err != nil {
		return 0, err
	}
	return Graph(c.outs[0]), nil
}

func (l *library) GraphInstantiate(ctx Context, g Graph) (Exec, error) {
	e, err := l.handle(ctx, cuGraphInstantiateWithFlags, uintptr(g), 0)
	return Exec(e), err
}

func (l *library) GraphLaunch(ctx Context, e Exec, s Stream) error {
	return l.in(ctx, cuGraphLaunch, uintptr(e), uintptr(s))
}

func (l *library) GraphExecDestroy(ctx Context, e Exec) error {
	return l.in(ctx, cuGraphExecDestroy, uintptr(e))
}

func (l *library) GraphDestroy(ctx Context, g Graph) error {
	return l.in(ctx, cuGraphDestroy, uintptr(g))
}
