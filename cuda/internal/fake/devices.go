package fake

import (
	"fmt"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// device is a device.
type device struct {
	ordinal int
	total   uint64
	used    uint64 // bytes of live memory
	cached  uint64 // the part of used that the pool keeps free
	pool    driver.Pool
	primary *context // nil while nobody retains it
}

// take counts n bytes, if they are there.
func (d *device) take(n uint64) bool {
	if n > d.total-d.used {
		return false
	}
	d.used += n
	return true
}

// Init implements [driver.Driver].
func (m *Machine) Init() error {
	if err := m.begin("Init"); err != nil {
		return err
	}
	defer m.end()
	if len(m.devices) == 0 {
		return fail("Init", driver.NoDevice)
	}
	m.initial = false
	return nil
}

// DriverGetVersion implements [driver.Driver].
func (m *Machine) DriverGetVersion() (int, error) {
	if err := m.begin("DriverGetVersion"); err != nil {
		return 0, err
	}
	defer m.mu.Unlock()
	return m.cfg.Version, nil
}

// DeviceGetCount implements [driver.Driver].
func (m *Machine) DeviceGetCount() (int, error) {
	if err := m.begin("DeviceGetCount"); err != nil {
		return 0, err
	}
	defer m.end()
	return len(m.devices), nil
}

// DeviceGet implements [driver.Driver].
func (m *Machine) DeviceGet(ordinal int) (driver.Device, error) {
	if err := m.begin("DeviceGet"); err != nil {
		return 0, err
	}
	defer m.end()
	if m.device(driver.Device(ordinal)) == nil {
		return 0, fail("DeviceGet", driver.InvalidDevice)
	}
	return driver.Device(ordinal), nil
}

// device returns a device, nil for an unknown one.
func (m *Machine) device(d driver.Device) *device {
	if d < 0 || int(d) >= len(m.devices) {
		return nil
	}
	return m.devices[d]
}

// withDevice starts a call about a device.
func (m *Machine) withDevice(call string, handle driver.Device) (*device, error) {
	if err := m.begin(call); err != nil {
		return nil, err
	}
	d := m.device(handle)
	if d == nil {
		m.mu.Unlock()
		return nil, fail(call, driver.InvalidDevice)
	}
	return d, nil
}

// DeviceGetName implements [driver.Driver].
func (m *Machine) DeviceGetName(handle driver.Device) (string, error) {
	d, err := m.withDevice("DeviceGetName", handle)
	if err != nil {
		return "", err
	}
	defer m.end()
	return fmt.Sprintf("Fake device %d", d.ordinal), nil
}

// DeviceGetUUID implements [driver.Driver]. Devices of equal ordinals are one
// device for all machines.
func (m *Machine) DeviceGetUUID(handle driver.Device) ([16]byte, error) {
	d, err := m.withDevice("DeviceGetUUID", handle)
	if err != nil {
		return [16]byte{}, err
	}
	defer m.end()
	return [16]byte{'f', 'a', 'k', 'e', 15: byte(d.ordinal)}, nil
}

// DeviceTotalMem implements [driver.Driver].
func (m *Machine) DeviceTotalMem(handle driver.Device) (uint64, error) {
	d, err := m.withDevice("DeviceTotalMem", handle)
	if err != nil {
		return 0, err
	}
	defer m.end()
	return d.total, nil
}

// DeviceGetAttribute implements [driver.Driver].
func (m *Machine) DeviceGetAttribute(a driver.Attribute, handle driver.Device) (int, error) {
	d, err := m.withDevice("DeviceGetAttribute", handle)
	if err != nil {
		return 0, err
	}
	defer m.end()
	flag := func(set bool) (int, error) {
		if set {
			return 1, nil
		}
		return 0, nil
	}
	switch a {
	case driver.MaxThreadsPerBlock:
		return 1024, nil
	case driver.MaxSharedMemoryPerBlock:
		return 48 << 10, nil
	case driver.MultiprocessorCount:
		return 4, nil
	case driver.PCIBusID:
		return 1 + d.ordinal, nil
	case driver.Integrated, driver.PCIDeviceID, driver.PCIDomainID:
		return 0, nil
	case driver.ComputeCapabilityMajor:
		return 9, nil
	case driver.ComputeCapabilityMinor:
		return 0, nil
	case driver.CanMapHostMemory, driver.UnifiedAddressing, driver.ManagedMemory,
		driver.VirtualMemoryManagementSupported, driver.MemoryPoolsSupported:
		return 1, nil
	case driver.HandleTypePOSIXDescriptorSupported:
		return flag(canShare && !m.cfg.NoExport)
	case driver.IPCEventSupported:
		return flag(canShare && !m.cfg.NoIPC)
	}
	return 0, fail("DeviceGetAttribute", driver.InvalidValue)
}

// DeviceCanAccessPeer implements [driver.Driver].
func (m *Machine) DeviceCanAccessPeer(handle, peer driver.Device) (bool, error) {
	d, err := m.withDevice("DeviceCanAccessPeer", handle)
	if err != nil {
		return false, err
	}
	defer m.end()
	p := m.device(peer)
	if p == nil {
		return false, fail("DeviceCanAccessPeer", driver.InvalidDevice)
	}
	return d != p && m.peers(d, p), nil
}

// peers reports whether d can access memory of p.
func (m *Machine) peers(d, p *device) bool {
	return d == p || m.cfg.Peer == nil || m.cfg.Peer(d.ordinal, p.ordinal)
}
