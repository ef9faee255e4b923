package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/share"
)

func shareCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "share",
		Short: "Lend tensors to other processes and see their holders",
		Long: `share lends tensors to other processes of the same user on this machine without
copying them, and shows their holders. docs/share.md is the protocol.

Names are sockets in a directory of the user's own: --dir, else
$TENURE_SHARE_DIR, else a place below $XDG_RUNTIME_DIR or /run/user. Containers
that have the directory mounted share with each other and with the host.`,
	}
	cmd.AddCommand(serveCommand(), listCommand(), getCommand(), dropCommand(), watchCommand())
	wantCommand(cmd)
	return cmd
}

// placeFlags say where names are and how long to wait for one.
type placeFlags struct {
	dir  string
	wait time.Duration
}

func (f *placeFlags) addDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dir, "dir", "", "the `DIRECTORY` of names, which must be the user's alone (mode 0700)")
}

func (f *placeFlags) addWait(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&f.wait, "wait", 0, "wait so long for the name to be there")
}

func (f *placeFlags) options() []share.Option {
	if f.dir == "" {
		return nil
	}
	return []share.Option{share.InDir(f.dir)}
}

// answerTime is how long another process may take to answer.
const answerTime = 5 * time.Second

// dial connects to a name, and waits for it if it is told to.
func (f *placeFlags) dial(ctx context.Context, name string) (*share.Peer, error) {
	for end := time.Now().Add(f.wait); ; {
		p, err := share.Dial(ctx, name, f.options()...)
		if err == nil || !errors.Is(err, share.ErrNotFound) || time.Now().After(end) {
			return p, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// with calls f with a connection to a name and closes it.
func (f *placeFlags) with(ctx context.Context, name string, do func(ctx context.Context, p *share.Peer) error) error {
	p, err := f.dial(ctx, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return errors.Join(do(ctx, p), p.Owner().Close())
}

func getCommand() *cobra.Command {
	var f placeFlags
	var output string
	cmd := &cobra.Command{
		Use:   "get NAME TENSOR",
		Short: "Get a published tensor, and print it or save it",
		Long: `get asks the process behind NAME for a tensor that it has published, prints it
in short, or saves it as .npy. The tensor is read where it lies, and given back.`,
		Example: `  tenure share get weights embed.weight
  tenure share get weights embed.weight -o embed.npy
  tenure share get camera latest -o - | python3 show.py`,
		Args: exactly("NAME", "TENSOR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], func(ctx context.Context, p *share.Peer) error {
				return get(ctx, cmd.OutOrStdout(), p, args[1], output)
			})
		},
	}
	f.addDir(cmd)
	f.addWait(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "", "save it as the .npy `FILE`, - for standard output")
	return cmd
}

func get(ctx context.Context, w io.Writer, p *share.Peer, name, output string) error {
	r, err := p.Get(ctx, name)
	if err != nil {
		return err
	}
	write := writeNpy(r.Tensor)
	switch output {
	case "":
		_, err = fmt.Fprintln(w, r.Tensor)
	case "-":
		err = write(w)
	default:
		err = wholefile.Write(output, write)
	}
	return errors.Join(err, r.Tensor.Release())
}

func dropCommand() *cobra.Command {
	var f placeFlags
	cmd := &cobra.Command{
		Use:   "drop NAME TENSOR",
		Short: "Ask a process to withdraw a tensor that it has published",
		Long: `drop asks the process behind NAME to withdraw a tensor. It is not sent to
further processes. Those that have it keep it, and its bytes are freed when the
last of them has released it.
A process may refuse: tenure share serve does, without --allow-drop.`,
		Args: exactly("NAME", "TENSOR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd.Context(), args[0], func(ctx context.Context, p *share.Peer) error { return p.Drop(ctx, args[1]) })
		},
	}
	f.addDir(cmd)
	f.addWait(cmd)
	return cmd
}
