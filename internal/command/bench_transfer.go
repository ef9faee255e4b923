package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
)

// maxTransferMiB bounds --mib, of which the command takes three times as much.
const maxTransferMiB = 1 << 20

func (p Program) transferCommand() *cobra.Command {
	var name string
	var mib, runs int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "transfer",
		Short: "Speed of copies between the host and a device",
		Long: `transfer copies bytes from the host to a device, back, and within the device, and
prints the median of several runs. The host's bytes are ordinary memory, as that
of tensors, which the device does not read itself: a copy goes through windows of
page-locked memory. A copy within the device reads and writes each byte, and
counts it once. For comparison, the processor's own copy is measured too.`,
		Example: `  tenure bench transfer
  tenure bench transfer --device cuda:1 --mib 1024`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if mib < 1 || mib > maxTransferMiB {
				return usagef("--mib: got %d, want 1 to %d", mib, maxTransferMiB)
			}
			if runs < 1 || runs > 10000 {
				return usagef("--runs: got %d, want 1 to 10000", runs)
			}
			r, err := p.measureTransfer(cmd.Context(), name, mib<<20, runs)
			if err != nil {
				return fmt.Errorf("bench transfer: %w", err)
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&name, "device", "", "the `NAME` of the device, by default the first one")
	cmd.Flags().IntVar(&mib, "mib", 256, "copy so many MiB")
	cmd.Flags().IntVar(&runs, "runs", 9, "measure so often, after one run that is not counted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	return cmd
}

// transferReport is the medians of copies.
type transferReport struct {
	Device string         `json:"device"`
	Model  string         `json:"model"`
	Bytes  int            `json:"bytes"`
	Runs   int            `json:"runs"`
	Copies []transferCopy `json:"copies"`
	Room   Room           `json:"room"`
}

// transferCopy is one direction.
type transferCopy struct {
	From    string  `json:"from"`
	To      string  `json:"to"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"bytes_per_second"`
}

// choose returns the device of that name, the first one for none.
func (p Program) choose(name string) (Device, Description, error) {
	f := p.find()
	var all []string
	for _, d := range f.devices {
		about, err := d.Describe()
		if err != nil {
			return nil, about, err
		}
		if name == "" || about.Name == name {
			return d, about, nil
		}
		all = append(all, about.Name)
	}
	if name != "" {
		return nil, Description{}, f.missing("--device", name, all)
	}
	var why []error
	for _, err := range f.without {
		why = append(why, err)
	}
	return nil, Description{}, fmt.Errorf("got no device, want one: %w", errors.Join(why...))
}

func (p Program) measureTransfer(ctx context.Context, name string, bytes, runs int) (r transferReport, err error) {
	d, about, err := p.choose(name)
	if err != nil {
		return r, err
	}
	mem, err := d.Open()
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	r = transferReport{Device: about.Name, Model: about.Model, Bytes: bytes, Runs: runs}
	if r.Copies, err = transfer(ctx, mem, about.Name, bytes, runs); err != nil {
		return r, err
	}
	r.Room, err = d.Room()
	return r, err
}

// transfer measures the copies of one device.
func transfer(ctx context.Context, d *memory.Device, name string, bytes, runs int) (list []transferCopy, err error) {
	var buffers [4]*memory.Buffer
	for i := range buffers {
		src := memory.Process(memory.Scratch)
		if i >= 2 {
			src = d.Source(memory.Scratch)
		}
		if buffers[i], err = src.Alloc(bytes); err != nil {
			return nil, err
		}
		defer buffers[i].Release()
	}
	here, there, a, b := buffers[0].Bytes(), buffers[1].Bytes(), buffers[2], buffers[3]
	for i := range here {
		here[i] = byte(i) // the system must not answer for pages that it has not yet made
	}
	e := d.Engine()
	last := make([]byte, 1)
	// A download sees all work that was submitted before it, so it waits for
	// it.
	wait := func() error { return e.Download(ctx, last, b, bytes-1) }
	for _, c := range []struct {
		from, to string
		copy     func() error
	}{
		{host, host, func() error { copy(there, here); return nil }},
		{host, name, func() error { return errors.Join(e.Upload(ctx, b, 0, here), wait()) }},
		{name, host, func() error { return e.Download(ctx, there, b, 0) }},
		{name, name, func() error {
			return errors.Join(e.Copy(ctx, a, 0, b, 0, bytes), e.Copy(ctx, b, 0, a, 0, bytes), wait())
		}},
	} {
		took := make([]float64, 0, runs)
		for i := range runs + 1 {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			start := time.Now()
			if err := c.copy(); err != nil {
				return nil, err
			}
			if i > 0 { // the first run makes windows and pages
				took = append(took, time.Since(start).Seconds())
			}
		}
		slices.Sort(took)
		median := took[len(took)/2]
		if c.from == name && c.to == name {
			median /= 2 // there and back
		}
		list = append(list, transferCopy{c.from, c.to, median, float64(bytes) / max(median, 1e-9)})
	}
	if !slices.Equal(here, there) {
		return nil, fmt.Errorf("got other bytes back from %s than were sent", name)
	}
	return list, nil
}

func (r transferReport) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s), %s, median of %s\n", r.Device, clean(r.Model), plan.FormatBytes(int64(r.Bytes)), countText(r.Runs, "run", "runs"))
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, c := range r.Copies {
		fmt.Fprintf(t, "  %s to %s\t%8.2f GB/s\t%s\n", c.From, c.To, c.Rate/1e9, time.Duration(c.Seconds*1e9).Round(time.Microsecond))
	}
	t.Flush()
	fmt.Fprintf(&b, "arena: %s\n", &r.Room)
	_, err := io.WriteString(w, b.String())
	return err
}
