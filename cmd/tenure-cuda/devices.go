package main

import (
	"fmt"

	"github.com/tenure-go/tenure/cuda"
	"github.com/tenure-go/tenure/internal/command"
	"github.com/tenure-go/tenure/memory"
)

// devices are the CUDA devices of the machine.
type devices struct{}

func (devices) Kind() string { return "cuda" }

func (devices) List() (list []command.Device, err error) {
	c, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	for i := range c.Len() {
		list = append(list, &device{driver: c, number: i})
	}
	return list, nil
}

// device is one of them; open is nil unless it is open.
type device struct {
	driver *cuda.Driver
	number int
	open   *cuda.Device
}

func (d *device) Describe() (command.Description, error) {
	info, err := d.driver.Info(d.number)
	if err != nil {
		return command.Description{}, err
	}
	u := info.UUID
	return command.Description{
		Name:          fmt.Sprintf("cuda:%d", d.number),
		Model:         info.Name,
		UUID:          fmt.Sprintf("GPU-%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]),
		Capability:    fmt.Sprintf("%d.%d", info.Major, info.Minor),
		Processors:    info.Processors,
		Driver:        d.driver.Version(),
		Bytes:         int64(info.Bytes),
		VirtualMemory: info.VMM,
		Pools:         info.Pools,
		Integrated:    info.Integrated,
	}, nil
}

func (d *device) Open() (mem *memory.Device, err error) {
	if d.open, err = d.driver.Device(d.number); err != nil {
		return nil, err
	}
	return d.open.Memory(), nil
}

func (d *device) Room() (command.Room, error) {
	free, err := d.open.Free()
	if err != nil {
		return command.Room{}, err
	}
	s := d.open.Arena().Stats()
	return command.Room{Free: free, Chunks: s.Chunks, Bytes: s.Bytes, Used: s.Class, Kept: s.Kept}, nil
}

func (d *device) Close() error { return d.open.Close() }
