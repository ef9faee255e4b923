package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// pinThread gives the calling goroutine a thread with this mask, which ends
// with the goroutine.
func pinThread(mask *unix.CPUSet) error {
	runtime.LockOSThread()
	return unix.SchedSetaffinity(0, mask)
}

// pinProcess keeps all threads of this process on one processor, and returns
// what undoes that.
func pinProcess(cpu int) (undo func(), err error) {
	var before, mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return nil, err
	}
	mask.Set(cpu)
	set := func(mask *unix.CPUSet) error {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return err
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil {
				return fmt.Errorf("/proc/self/task: %w", err)
			}
			if err := unix.SchedSetaffinity(id, mask); err != nil && err != unix.ESRCH {
				return err
			}
		}
		return nil
	}
	procs := runtime.GOMAXPROCS(1)
	undo = func() {
		_ = set(&before)
		runtime.GOMAXPROCS(procs)
	}
	if err := set(&mask); err != nil {
		undo()
		return nil, err
	}
	return undo, nil
}
