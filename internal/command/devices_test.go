package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// pretended is devices without hardware.
type pretended struct {
	why  error
	list []Device
}

func (p pretended) Kind() string            { return "cuda" }
func (p pretended) List() ([]Device, error) { return p.list, p.why }

type pretendedDevice struct {
	name string
	mem  *memory.Device
	busy error
	open *int // devices that are open
}

func (d pretendedDevice) Describe() (Description, error) {
	return Description{Name: d.name, Model: "Pretended \x1b[31m1", UUID: "GPU-1", Capability: "9.0", Processors: 2, Driver: "12.9", Bytes: 5 << 30, VirtualMemory: true}, nil
}

func (d pretendedDevice) Open() (*memory.Device, error) {
	if d.busy == nil {
		*d.open++
	}
	return d.mem, d.busy
}

func (d pretendedDevice) Room() (Room, error) { return Room{Free: 4 << 30, Chunks: 1}, nil }
func (d pretendedDevice) Close() error        { *d.open--; return nil }

// with runs a program that has the devices, and wants all to be closed at its
// end.
func with(t *testing.T, want int, devices func(open *int) Devices, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	open := 0
	if code := (Program{Name: "tenure-cuda", Devices: devices(&open)}).execute(t.Context(), args, &out, &errs); code != want {
		t.Fatalf("%v: got exit code %d, want %d: %s", args, code, want, &errs)
	}
	if open != 0 {
		t.Errorf("%v: got %d devices that are open, want none", args, open)
	}
	return out.String(), errs.String()
}

func none(*int) Devices { return pretended{why: errors.New("cuda: no CUDA device:\nno driver")} }

func TestDevices(t *testing.T) {
	memorytest.Check(t)
	away := memorytest.NewDevice(t, "away:0")
	two := func(open *int) Devices {
		return pretended{list: []Device{pretendedDevice{"cuda:0", away.Device, nil, open}, pretendedDevice{"cuda:1", nil, errors.New("busy"), open}}}
	}
	for _, c := range []struct {
		devices func(*int) Devices
		code    int
		args    string
		want    []string // of the output, or of the error
	}{
		{none, 0, "devices", []string{"host    ", "\nno cuda: cuda: no CUDA device:; no driver\n"}},
		{none, 0, "devices host", []string{"host    "}},
		{none, 1, "devices cuda", []string{"tenure-cuda: devices: got cuda, and there is none: cuda: no CUDA device:; no driver\n"}},
		{none, 1, "devices cuda:3", []string{"got cuda:3, and there is none"}},
		{none, 1, "devices hip", []string{`got "hip", want host` + "\n"}},
		{none, 1, "bench transfer", []string{"bench transfer: got no device, want one: cuda: no CUDA device:; no driver\n"}},
		{two, 0, "devices", []string{"\ncuda:0  Pretended ?[31m1, compute capability 9.0, 2 multiprocessors, driver of version 12.9\n", "5.00 GiB, of which 4.00 GiB are free", "\ncuda:1", "it cannot be opened: busy", "virtual memory"}},
		{two, 0, "devices cuda:0", []string{"cuda:0"}},
		{two, 1, "devices cuda:2", []string{`got "cuda:2", want host, cuda:0, cuda:1`}},
		{two, 1, "bench transfer --device cuda:1 --mib 1", []string{"bench transfer: busy"}},
		{two, 1, "bench transfer --device cuda:2", []string{`--device: got "cuda:2", want host`}},
		{two, 2, "bench transfer --mib 0", []string{"--mib: got 0, want 1 to"}},
		{two, 2, "bench transfer --runs 0", []string{"--runs: got 0"}},
		{two, 0, "bench transfer --mib 1 --runs 2", []string{"cuda:0 (Pretended ?[31m1), 1.00 MiB, median of 2 runs\n", "host to cuda:0 ", "cuda:0 to host ", "cuda:0 to cuda:0 ", " GB/s ", "arena: "}},
	} {
		out, errs := with(t, c.code, c.devices, strings.Fields(c.args)...)
		for _, w := range c.want {
			if !strings.Contains(out+errs, w) {
				t.Errorf("%s: got\n%s%swant %q", c.args, out, errs, w)
			}
		}
		if c.code == 0 && errs != "" || c.code != 0 && out != "" {
			t.Errorf("%s: got %q as output and %q as errors", c.args, out, errs)
		}
	}
	if out, _ := with(t, 0, two, "devices", "cuda:0"); strings.Contains(out, "host") || strings.Contains(out, "cuda:1") {
		t.Errorf("got\n%swant cuda:0 alone", out)
	}
}

func TestDevicesAsJSON(t *testing.T) {
	away := memorytest.NewDevice(t, "away:0")
	one := func(open *int) Devices {
		return pretended{list: []Device{pretendedDevice{"cuda:0", away.Device, nil, open}}}
	}
	var r devicesReport
	out, _ := with(t, 0, one, "devices", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Devices) != 1 || r.Devices[0].Description.Bytes != 5<<30 || r.Devices[0].Free != 4<<30 || len(r.Without) != 0 {
		t.Errorf("got %+v, %v from\n%s", r, err, out)
	}
	out, _ = with(t, 0, none, "devices", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Devices) != 0 || r.Without["cuda"] == "" || !strings.Contains(out, `"devices": []`) {
		t.Errorf("got %+v, %v from\n%s", r, err, out)
	}
	var tr transferReport
	out, _ = with(t, 0, one, "bench", "transfer", "--mib", "1", "--runs", "1", "--json")
	if err := json.Unmarshal([]byte(out), &tr); err != nil || len(tr.Copies) != 4 || tr.Bytes != 1<<20 || tr.Copies[3].Rate <= 0 {
		t.Errorf("got %+v, %v from\n%s", tr, err, out)
	}
}

// A copy that does not come back as it was sent is an error, and so is a
// device that fails.
func TestTransferFails(t *testing.T) {
	memorytest.Check(t)
	away := memorytest.NewDevice(t, "away:0")
	away.Fail(errors.New("lost"))
	one := func(open *int) Devices {
		return pretended{list: []Device{pretendedDevice{"cuda:0", away.Device, nil, open}}}
	}
	if _, errs := with(t, 1, one, "bench", "transfer", "--mib", "1"); !strings.Contains(errs, "lost") {
		t.Errorf("got %q, want the device's error", errs)
	}
}

// Help, errors and examples name the program that runs.
func TestNameOfTheProgram(t *testing.T) {
	out, _ := with(t, 0, none, "help", "share", "get")
	if !strings.Contains(out, "\n  tenure-cuda share get weights embed.weight -o embed.npy\n") || strings.Contains(out, " tenure share") {
		t.Errorf("got\n%s", out)
	}
	if out, _ = with(t, 0, none, "--version"); !strings.HasPrefix(out, "tenure-cuda ") {
		t.Errorf("got %q", out)
	}
	if _, errs := with(t, 2, none, "fly"); !strings.HasPrefix(errs, "tenure-cuda: got command") || !strings.Contains(errs, `run "tenure-cuda help"`) {
		t.Errorf("got %q", errs)
	}
}
