//go:build !linux

package fake

import (
	"errors"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// canShare: memory and events stay in this process.
const canShare = false

type (
	backing  struct{}
	foreign  struct{}
	shared   struct{}
	importer struct{}
)

func (*backing) close()                        {}
func (*backing) revoke([]byte)                 {}
func (*backing) elsewhere() bool               { return false }
func (*foreign) valid() error                  { return nil }
func (*shared) close(*Machine)                 {}
func (*shared) recorder(*Machine) func()       { return nil }
func (*shared) waiter(*Machine) func() bool    { return nil }
func (*importer) forget(*area)                 {}
func (*Machine) disown()                       {}
func (*Machine) share(*physical, string) error { return errors.ErrUnsupported }
func (m *Machine) unsupported(call string) error {
	if err := m.begin(call); err != nil {
		return err
	}
	defer m.end()
	return fail(call, driver.NotSupported)
}

// MemExportToShareableHandle implements [driver.Driver].
func (m *Machine) MemExportToShareableHandle(driver.Memory) (int, error) {
	return 0, m.unsupported("MemExportToShareableHandle")
}

// MemImportFromShareableHandle implements [driver.Driver].
func (m *Machine) MemImportFromShareableHandle(int) (driver.Memory, error) {
	return 0, m.unsupported("MemImportFromShareableHandle")
}

// IpcGetMemHandle implements [driver.Driver].
func (m *Machine) IpcGetMemHandle(driver.Context, driver.Pointer) (driver.IPCHandle, error) {
	return driver.IPCHandle{}, m.unsupported("IpcGetMemHandle")
}

// IpcOpenMemHandle implements [driver.Driver].
func (m *Machine) IpcOpenMemHandle(driver.Context, driver.IPCHandle) (driver.Pointer, error) {
	return 0, m.unsupported("IpcOpenMemHandle")
}

// IpcCloseMemHandle implements [driver.Driver].
func (m *Machine) IpcCloseMemHandle(driver.Context, driver.Pointer) error {
	return m.unsupported("IpcCloseMemHandle")
}

// IpcGetEventHandle implements [driver.Driver].
func (m *Machine) IpcGetEventHandle(driver.Context, driver.Event) (driver.IPCHandle, error) {
	return driver.IPCHandle{}, m.unsupported("IpcGetEventHandle")
}

// IpcOpenEventHandle implements [driver.Driver].
func (m *Machine) IpcOpenEventHandle(driver.Context, driver.IPCHandle) (driver.Event, error) {
	return 0, m.unsupported("IpcOpenEventHandle")
}
