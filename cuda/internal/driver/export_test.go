//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

// For the tests of an external package, which may import drivertest.
var (
	LoadLibrary = load
	Symbol      = symbol
)
