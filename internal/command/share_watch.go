package command

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

func watchCommand() *cobra.Command {
	var f placeFlags
	var every time.Duration
	var count int
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Show the holders of leases, again every second",
		Long: `watch shows what list shows, again every second, until it is interrupted: on a
terminal in place, else a line for each name and for weights in common.`,
		Args: optional("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < 10*time.Millisecond {
				return usagef("--every: got %v, want at least 10ms", every)
			}
			if count < 0 {
				return usagef("--count: got %d, want 0 or more", count)
			}
			return f.watch(cmd.Context(), cmd.OutOrStdout(), args, every, count)
		},
	}
	f.addDir(cmd)
	f.addWait(cmd)
	cmd.Flags().DurationVar(&every, "every", time.Second, "how often")
	cmd.Flags().IntVar(&count, "count", 0, "end after so many times (default: when interrupted)")
	return cmd
}

func (f *placeFlags) watch(ctx context.Context, w io.Writer, args []string, every time.Duration, count int) error {
	draw := plainLines
	if fd := int(os.Stdout.Fd()); w == io.Writer(os.Stdout) && term.IsTerminal(fd) {
		draw = func(w io.Writer, all listing, now time.Time) error {
			width, height, err := term.GetSize(fd)
			if err != nil {
				return err
			}
			return drawScreen(w, all, now, width, height)
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for i := 0; count == 0 || i < count; i++ {
		if i > 0 {
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
		all, err := f.look(ctx, args)
		if ctx.Err() != nil {
			return nil // it was interrupted, as it should be
		}
		if err != nil {
			return err
		}
		if err := draw(w, all, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// plainLines prints a line for each name, and for what processes have in
// common.
func plainLines(w io.Writer, all listing, now time.Time) error {
	var b bytes.Buffer
	for _, o := range all.Names {
		text := ""
		switch {
		case o.Stale:
			text = "its process was killed"
		case o.Error != "":
			text = clean(o.Error)
		default:
			text = headline(o.State)
		}
		fmt.Fprintf(&b, "%s %s: %s\n", now.Format(time.TimeOnly), o.Name, text)
	}
	for _, c := range all.Common {
		fmt.Fprintf(&b, "%s common %s\n", now.Format(time.TimeOnly), commonText(c))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// drawScreen prints over the previous screen, no more than fits.
func drawScreen(w io.Writer, all listing, now time.Time, width, height int) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "%s  (interrupt to end)\n\n", now.Format(time.TimeOnly))
	if err := all.print(&text, false); err != nil {
		return err
	}
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	if height > 1 && len(lines) > height-1 {
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("... %d more lines: tenure share list", more))
	}
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range lines {
		if r := []rune(line); width > 0 && len(r) > width {
			line = string(r[:width])
		}
		b.WriteString(line + "\x1b[K\n")
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(w, b.String())
	return err
}
