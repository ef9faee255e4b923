// Package command is the commands of tenure and tenure-cuda, which are the same
// program but for the devices that it knows:
//
//	os.Exit(command.Program{Name: "tenure"}.Main())
//
// A program passes the devices of a driver as [Devices]. This package imports
// no driver, so that a program without one stays static.
//
// A command owns the tensors, models and devices that it opens and ends them
// before it returns. Commands run one at a time in a process; only the tests
// run several.
package command
