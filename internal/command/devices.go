package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
)

// Devices are the devices of one kind that a program knows.
type Devices interface {
	// Kind is the word with which the names of the devices begin, such as
	// "cuda".
	Kind() string
	// List finds the devices, without opening them. The error says, in one
	// line, why there are none.
	List() ([]Device, error)
}

// Device is a device of a program. It need not be open to be described.
type Device interface {
	Describe() (Description, error)
	// Open makes its memory usable until Close.
	Open() (*memory.Device, error)
	// Room reads the memory of the device, which is open.
	Room() (Room, error)
	Close() error
}

// Description is what a device is.
type Description struct {
	Name          string `json:"name"` // such as "cuda:0"
	Model         string `json:"model"`
	UUID          string `json:"uuid"`
	Capability    string `json:"compute_capability"`
	Processors    int    `json:"multiprocessors"`
	Driver        string `json:"driver"` // the version that it supports
	Bytes         int64  `json:"bytes"`
	VirtualMemory bool   `json:"virtual_memory"` // chunks that can be shared by descriptor
	Pools         bool   `json:"pools"`          // stream-ordered
	Integrated    bool   `json:"integrated"`
}

// Room is the memory of a device: all that is free, for all processes, and what
// the arena of this process has.
type Room struct {
	Free   int64 `json:"free_bytes"`
	Chunks int   `json:"arena_chunks"`
	Bytes  int64 `json:"arena_bytes"`
	Used   int64 `json:"arena_used_bytes"`
	Kept   int64 `json:"arena_kept_bytes"`
}

// elsewhere is the programs that know devices of a kind.
var elsewhere = map[string]string{"cuda": "tenure-cuda"}

// host is the name of the processor's memory.
const host = "host"

// found is the devices that a program found.
type found struct {
	devices []Device
	without map[string]error // why there are none of a kind
}

func (p Program) find() found {
	f := found{without: map[string]error{}}
	for kind, program := range elsewhere {
		f.without[kind] = fmt.Errorf("%s knows no %s devices, %s does", p.Name, kind, program)
	}
	if p.Devices == nil {
		return f
	}
	delete(f.without, p.Devices.Kind())
	list, err := p.Devices.List()
	if err != nil {
		f.without[p.Devices.Kind()] = err
	}
	f.devices = list
	return f
}

// deviceReport is what the command prints of a device. Trouble says why the
// rest is missing.
type deviceReport struct {
	Description
	*Room
	Trouble string `json:"error,omitempty"`
}

// devicesReport is what the command prints.
type devicesReport struct {
	Program string            `json:"program"`
	Host    string            `json:"host"`
	Devices []deviceReport    `json:"devices"`
	Without map[string]string `json:"without"` // why there is none of a kind
}

func (p Program) devicesCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "devices [NAME...]",
		Short: "List the memories that tensors can be in",
		Long: `devices lists the processor's memory, called host, and the devices: their names,
memory, and what their drivers can do. Free memory is what the driver gives to
any process; opening the device, which the command does to ask, takes some of it.

Without names, the exit code is 0 whatever there is, and a line says why there
are no devices of a kind. With names, such as cuda:0, or cuda for any device of
that kind, only these are listed, and one that is not there is an error (1).`,
		Example: `  tenure devices
  tenure devices cuda --json`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := p.reportDevices(cmd.Context(), args)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return r.print(cmd.OutOrStdout(), len(args) == 0 || slices.Contains(args, host))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

// reportDevices describes all devices, or those that are named.
func (p Program) reportDevices(ctx context.Context, names []string) (devicesReport, error) {
	f := p.find()
	r := devicesReport{Program: p.Name, Host: fmt.Sprintf("%s/%s, %d processors", runtime.GOOS, runtime.GOARCH, runtime.NumCPU()), Devices: []deviceReport{}, Without: map[string]string{}}
	var all []string
	for _, d := range f.devices {
		if err := ctx.Err(); err != nil {
			return r, fmt.Errorf("devices: %w", context.Cause(ctx))
		}
		about, err := d.Describe()
		if err != nil {
			return r, fmt.Errorf("devices: %w", err)
		}
		all = append(all, about.Name)
		if len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return isNamed(about.Name, n) }) {
			r.Devices = append(r.Devices, reportOf(d, about))
		}
	}
	for _, n := range names {
		if n == host || slices.ContainsFunc(all, func(name string) bool { return isNamed(name, n) }) {
			continue
		}
		return r, f.missing("devices", n, all)
	}
	for kind, why := range f.without {
		r.Without[kind] = oneLine(why.Error())
	}
	return r, nil
}

// isNamed reports whether name is wanted by its own name or by its kind.
func isNamed(name, wanted string) bool {
	kind, _, _ := strings.Cut(name, ":")
	return name == wanted || kind == wanted
}

// missing is the error of a device that is not there.
func (f found) missing(op, name string, all []string) error {
	kind, _, _ := strings.Cut(name, ":")
	if why := f.without[kind]; why != nil {
		return fmt.Errorf("%s: got %s, and there is none: %w", op, name, why)
	}
	return fmt.Errorf("%s: got %q, want %s", op, name, strings.Join(append([]string{host}, all...), ", "))
}

// reportOf opens a device to read its memory. One that another process keeps
// for itself is described all the same.
func reportOf(d Device, about Description) deviceReport {
	r := deviceReport{Description: about}
	room, err := func() (room Room, err error) {
		if _, err := d.Open(); err != nil {
			return room, err
		}
		room, err = d.Room()
		return room, errors.Join(err, d.Close())
	}()
	if err != nil {
		r.Trouble = oneLine(err.Error())
		return r
	}
	r.Room = &room
	return r
}

func (r devicesReport) print(w io.Writer, withHost bool) error {
	var b strings.Builder
	if withHost {
		fmt.Fprintf(&b, "%s    %s\n", host, r.Host)
	}
	for _, d := range r.Devices {
		d.print(&b)
	}
	if withHost {
		for kind, why := range r.Without {
			fmt.Fprintf(&b, "no %s: %s\n", kind, why)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (d deviceReport) print(b *strings.Builder) {
	fmt.Fprintf(b, "%s  %s, compute capability %s, %d multiprocessors, driver of version %s\n", d.Name, clean(d.Model), d.Capability, d.Processors, d.Driver)
	fmt.Fprintf(b, "  uuid     %s\n", d.UUID)
	if d.Room == nil {
		fmt.Fprintf(b, "  memory   %s; it cannot be opened: %s\n", plan.FormatBytes(d.Description.Bytes), d.Trouble)
	} else {
		fmt.Fprintf(b, "  memory   %s, of which %s are free\n", plan.FormatBytes(d.Description.Bytes), plan.FormatBytes(d.Free))
	}
	var has []string
	if d.Integrated {
		has = append(has, "memory that is the host's")
	}
	if d.VirtualMemory {
		has = append(has, "virtual memory (arenas can be shared)")
	}
	if d.Pools {
		has = append(has, "stream-ordered pools")
	}
	if len(has) > 0 {
		fmt.Fprintf(b, "  has      %s\n", strings.Join(has, ", "))
	}
	if d.Room != nil {
		fmt.Fprintf(b, "  arena    %s\n", d.Room)
	}
}

// String describes what the arena of this process has.
func (r *Room) String() string {
	return fmt.Sprintf("%s in %s: %s in use, %s kept", plan.FormatBytes(r.Bytes), countText(r.Chunks, "chunk", "chunks"), plan.FormatBytes(r.Used), plan.FormatBytes(r.Kept))
}
