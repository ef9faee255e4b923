// Command tenure-cuda is command tenure with CUDA devices.
//
//	tenure-cuda devices           list the devices; exit code 0, with or without one
//	tenure-cuda devices cuda      the same; exit code 1 without a CUDA device
//	tenure-cuda bench transfer    measure copies between the host and a device
//
// All other commands are those of tenure, and compute on the processor. The
// CUDA driver is opened by the commands that use a device, and only then, so
// that the others work on machines without one. The program needs the
// platform's dynamic loader, and tenure does not: this is why there are two.
// Memory of a device is allocated by one command and ends with it.
package main

import (
	"os"

	"github.com/tenure-go/tenure/internal/command"
)

func main() { os.Exit(command.Program{Name: "tenure-cuda", Devices: devices{}}.Main()) }
