//go:build amd64 || arm64

package driver

import "golang.org/x/sys/windows"

func load(path string) (uintptr, error) {
	h, err := windows.LoadLibrary(path)
	return uintptr(h), err
}

// symbol returns the address of a function, 0 if the library lacks it.
func symbol(handle uintptr, name string) uintptr {
	p, err := windows.GetProcAddress(windows.Handle(handle), name)
	if err != nil {
		return 0
	}
	return p
}
