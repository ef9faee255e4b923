//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// Python is the interpreter of this process. A process has one, which can be
// started once.
type Python struct {
	c    *pythonC
	main uintptr // the namespace of __main__
	ours uintptr // the namespace of module tenure

	mu      sync.RWMutex // held for reading while a goroutine is in Python
	closing chan struct{}
	closed  chan error

	threads sync.Mutex
	idle    []chan pythonCall // of the threads that wait for a call
}

// pythonC are the functions of libpython. An object is the address of a
// PyObject.
type pythonC struct {
	InitializeEx  func(signals int32)                                               `c:"Py_InitializeEx"`
	IsInitialized func() int32                                                      `c:"Py_IsInitialized"`
	FinalizeEx    func() int32                                                      `c:"Py_FinalizeEx"`
	SaveThread    func() uintptr                                                    `c:"PyEval_SaveThread"`
	RestoreThread func(state uintptr)                                               `c:"PyEval_RestoreThread"`
	Ensure        func() int32                                                      `c:"PyGILState_Ensure"`
	Attached      func() int32                                                      `c:"PyGILState_Check"`
	IncRef        func(o uintptr)                                                   `c:"Py_IncRef"`
	DecRef        func(o uintptr)                                                   `c:"Py_DecRef"`
	AddModule     func(name string) uintptr                                         `c:"PyImport_AddModule"`
	ModuleDict    func(m uintptr) uintptr                                           `c:"PyModule_GetDict"`
	RunString     func(source string, start int32, globals, locals uintptr) uintptr `c:"PyRun_String"`
	DictGet       func(d uintptr, key string) uintptr                               `c:"PyDict_GetItemString"`
	DictSet       func(d uintptr, key string, o uintptr) int32                      `c:"PyDict_SetItemString"`
	NewTuple      func(n int) uintptr                                               `c:"PyTuple_New"`
	TupleSet      func(t uintptr, i int, o uintptr) int32                           `c:"PyTuple_SetItem"` // steals the reference to o
	NewInt        func(n int64) uintptr                                             `c:"PyLong_FromLongLong"`
	NewString     func(s *byte, n int) uintptr                                      `c:"PyUnicode_FromStringAndSize"`
	String        func(o uintptr, n *int) uintptr                                   `c:"PyUnicode_AsUTF8AndSize"`
	Call          func(f, args uintptr) uintptr                                     `c:"PyObject_CallObject"`
	NewFunction   func(def *methodDef, self, module uintptr) uintptr                `c:"PyCFunction_NewEx"`
	ErrClear      func()                                                            `c:"PyErr_Clear"`
	ErrSet        func(kind uintptr, text string)                                   `c:"PyErr_SetString"`
	CapsuleValid  func(o uintptr, name *byte) int32                                 `c:"PyCapsule_IsValid"`
	CapsuleGet    func(o uintptr, name *byte) uintptr                               `c:"PyCapsule_GetPointer"`
	CapsuleRename func(o uintptr, name *byte) int32                                 `c:"PyCapsule_SetName"`
}

//go:embed bootstrap.py
var bootstrap string

// fileInput is Py_file_input: source of any number of statements.
const fileInput = 257

// ErrPython is the error of every exception that Python code raised.
var ErrPython = errors.New("python raised")

var errClosed = errors.New("capi: python: got a call after Close")

var started struct {
	sync.Mutex
	once bool
}

// OpenPython loads libpython and starts the interpreter. It runs until Close or
// the end of the process.
func OpenPython(in Interpreter) (*Python, error) {
	started.Lock()
	defer started.Unlock()
	if started.once {
		return nil, errors.New("capi: open python: got a second call, want one interpreter per process")
	}
	lib, err := Open(in.Library)
	if err != nil {
		return nil, err
	}
	p := &Python{c: &pythonC{}, closing: make(chan struct{}), closed: make(chan error, 1)}
	if err := lib.bind(p.c); err != nil {
		return nil, err
	}
	if err := exchange.bind(lib, p); err != nil {
		return nil, err
	}
	if p.c.IsInitialized() != 0 {
		return nil, errors.New("capi: open python: got an interpreter that runs already, want to start it")
	}
	started.once = true
	ready := make(chan error)
	go p.thread(ready)
	if err := <-ready; err != nil {
		return nil, err
	}
	source := "import sys\n"
	for _, dir := range in.Path {
		source += fmt.Sprintf("if %[1]s not in sys.path: sys.path.append(%[1]s)\n", quote(dir))
	}
	return p, p.Run(source)
}

// quote returns s as a Python literal in ASCII.
func quote(s string) string {
	text := "'"
	for _, r := range s {
		text += fmt.Sprintf("\\U%08x", r)
	}
	return text + "'"
}

// thread is Python's main thread: the thread that starts the interpreter must
// also end it.
func (p *Python) thread(ready chan<- error) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	p.c.InitializeEx(0)
	err := p.prepare()
	state := p.c.SaveThread()
	ready <- err
	<-p.closing
	p.c.RestoreThread(state)
	if p.c.FinalizeEx() != 0 {
		p.closed <- errors.New("capi: close python: got an error while buffers were flushed")
	}
	close(p.closed)
}

func (p *Python) prepare() error {
	p.main = p.c.ModuleDict(p.c.AddModule("__main__"))
	p.ours = p.c.ModuleDict(p.c.AddModule("tenure"))
	for i := range exchange.methods {
		f := p.c.NewFunction(&exchange.methods[i], 0, 0)
		if f == 0 || p.c.DictSet(p.ours, exchange.names[i], f) != 0 {
			return errors.New("capi: open python: cannot make a function")
		}
	}
	exchange.keyName = p.string("_key")
	api := exchange.offer()
	if api == 0 || p.c.DictSet(p.ours, "_exchange_api", api) != 0 {
		return errors.New("capi: open python: cannot make a capsule")
	}
	p.c.DecRef(api)
	done := p.c.RunString(bootstrap, fileInput, p.ours, p.ours)
	if done == 0 {
		p.c.ErrClear()
		return errors.New("capi: open python: its code did not run")
	}
	p.c.DecRef(done)
	return nil
}

// Close ends the interpreter. Python's exports of tensors end as far as Python
// frees its objects. Go's imports of Python objects stay readable and are never
// freed.
func (p *Python) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
		return errClosed
	default:
	}
	close(p.closing)
	return <-p.closed
}

// Run runs Python source in module __main__. An exception is an error that
// matches ErrPython, with the traceback as its text.
func (p *Python) Run(source string) error {
	return p.within(func() error {
		done, err := p.call("_run", p.string(source), p.borrow(p.main))
		if err == nil {
			p.c.DecRef(done)
		}
		return err
	})
}

// within calls f on a thread that is attached to Python, with its global lock:
// on the caller's, if Python called it, and otherwise on one of the threads
// that are kept for this.
//
// A thread keeps its Python thread state from one call to the next. Libraries
// in C++ remember the state of a thread that they have seen (pybind11 does, and
// so PyTorch), and wait forever for one that was deleted in between.
func (p *Python) within(f func() error) error {
	p.mu.RLock()
	defer p.mu.RUnlock()
	select {
	case <-p.closing:
		return errClosed
	default:
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if p.c.Attached() != 0 {
		return f()
	}
	call := pythonCall{do: f, done: make(chan any, 1)}
	if thread := p.idleThread(); thread != nil {
		thread <- call
	} else {
		go p.serve(call)
	}
	switch end := (<-call.done).(type) {
	case nil:
		return nil
	case error:
		return end
	case callPanic:
		panic(end.value)
	}
	return nil
}

// pythonCall is a call of within on its way to a thread. done gets its error,
// or a callPanic.
type pythonCall struct {
	do   func() error
	done chan any
}

// callPanic is the value that a call panicked with.
type callPanic struct{ value any }

func (c pythonCall) run() (end any) {
	defer func() {
		if v := recover(); v != nil {
			end = callPanic{v}
		}
	}()
	if err := c.do(); err != nil {
		return err
	}
	return nil
}

func (p *Python) idleThread() chan pythonCall {
	p.threads.Lock()
	defer p.threads.Unlock()
	last := len(p.idle) - 1
	if last < 0 {
		return nil
	}
	thread := p.idle[last]
	p.idle = p.idle[:last]
	return thread
}

// serve does calls on a thread that stays attached to Python between them,
// without its lock, until the interpreter ends.
func (p *Python) serve(call pythonCall) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	p.c.Ensure()           // never undone: the interpreter deletes the thread state at its end
	state := p.c.SaveThread()
	calls := make(chan pythonCall, 1)
	for {
		p.c.RestoreThread(state)
		end := call.run()
		p.c.SaveThread()
		p.threads.Lock()
		p.idle = append(p.idle, calls)
		p.threads.Unlock()
		call.done <- end
		select {
		case call = <-calls:
		case <-p.closing:
			return
		}
	}
}

// call calls a function of module tenure. It takes ownership of the arguments;
// the caller owns the result.
func (p *Python) call(name string, args ...uintptr) (uintptr, error) {
	t := p.c.NewTuple(len(args) + 1)
	p.c.TupleSet(t, 0, p.borrow(p.c.DictGet(p.ours, name)))
	for i, a := range args {
		p.c.TupleSet(t, i+1, a)
	}
	got := p.c.Call(p.c.DictGet(p.ours, "_guard"), t)
	p.c.DecRef(t)
	if got == 0 {
		p.c.ErrClear()
		return 0, fmt.Errorf("capi: %w an error and another while it was reported", ErrPython)
	}
	var n int
	text := p.c.String(got, &n)
	if text == 0 { // not a string
		p.c.ErrClear()
		return got, nil
	}
	err := fmt.Errorf("capi: %w\n%s", ErrPython, string(unsafe.Slice((*byte)(pointer(text)), n)))
	p.c.DecRef(got)
	return 0, err
}

// borrow adds a reference.
func (p *Python) borrow(o uintptr) uintptr {
	p.c.IncRef(o)
	return o
}

func (p *Python) string(s string) uintptr { return p.c.NewString(unsafe.StringData(s), len(s)) }
