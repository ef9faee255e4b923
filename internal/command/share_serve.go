package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

type serveFlags struct {
	placeFlags
	name      string
	allowDrop bool
}

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve FILE...",
		Short: "Publish the tensors of files until interrupted",
		Long: `serve puts the tensors of files into memory that other processes map, and
publishes them until it is interrupted: the array of an .npy under the file's
name, those of an .npz or .safetensors and the weights of an .onnx under their
own. Each is in memory once, however many processes read it.

When it ends, or is killed, processes that have a tensor keep it.`,
		Example: `  tenure share serve model.safetensors --name weights
  tenure share get weights embed.weight`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("%sgot 0 arguments, want FILE...", prefix(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.serve(cmd.Context(), cmd.OutOrStdout(), args) },
	}
	cmd.Flags().StringVar(&f.name, "name", "", "the `NAME` that others dial (default: that of the first file)")
	f.addDir(cmd)
	cmd.Flags().BoolVar(&f.allowDrop, "allow-drop", false, "let other processes withdraw tensors")
	return cmd
}

func (f *serveFlags) serve(ctx context.Context, w io.Writer, paths []string) (err error) {
	name := f.name
	if name == "" {
		name = baseName(paths[0])
	}
	var opts []share.OwnerOption
	if f.allowDrop {
		opts = append(opts, share.AllowDrop())
	}
	owner, err := share.NewOwner(opts...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, owner.Close()) }()
	var work work
	done := work.begin("reading tensors")
	err = publishFiles(ctx, owner, paths, &work)
	done()
	if err != nil {
		return err
	}
	l, err := owner.Listen(name, f.options()...)
	if err != nil {
		return err
	}
	s := owner.State()
	fmt.Fprintf(w, "%s: %s, %s, at %s; interrupt to end\n", name, countText(len(s.Names), "tensor", "tensors"), plan.FormatBytes(s.Bytes.Used), l.Path())
	for err == nil { // peers request tensors by themselves: there is nothing to do for one
		_, err = l.Accept(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func baseName(path string) string {
	base := filepath.Base(path)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// publishFiles publishes the tensors of the files.
func publishFiles(ctx context.Context, owner *share.Owner, paths []string, work *work) error {
	var done, total int64 // of the files, about as many bytes as of their tensors
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			total += info.Size()
		}
	}
	from := map[string]string{}
	for _, path := range paths {
		err := eachTensor(path, func(name string, x *tensor.Tensor) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			if other, twice := from[name]; twice {
				return fmt.Errorf("%s: got another tensor %q, the first is in %s: %w", path, name, other, share.ErrRefused)
			}
			from[name] = path
			done += int64(x.NumBytes())
			work.to(stage{name: "reading tensors", done: done, total: total, bytes: true})
			return owner.Publish(name, x)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eachTensor calls do with each tensor of a file, which do borrows.
func eachTensor(path string, do func(name string, x *tensor.Tensor) error) error {
	give := func(name string, x *tensor.Tensor, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(do(name, x), x.Release())
	}
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".npy":
		x, err := npy.ReadFile(path)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return give(baseName(path), x, nil)
	case ".npz":
		a, err := npy.OpenArchive(path)
		if err != nil {
			return err
		}
		for _, name := range a.Names() {
			if err == nil {
				x, readErr := a.Read(name)
				err = give(name, x, readErr)
			}
		}
		return errors.Join(err, a.Close())
	case ".safetensors":
		file, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		for _, info := range file.Tensors() {
			if err == nil {
				x, readErr := file.Tensor(info.Name)
				err = give(info.Name, x, readErr)
			}
		}
		return errors.Join(err, file.Close())
	case ".onnx":
		return tenure.EachWeight(path, do)
	default:
		return usagef("%s: got a file of type %q, want .npy, .npz, .safetensors or .onnx", path, ext)
	}
}

func writeNpy(x *tensor.Tensor) func(io.Writer) error {
	return func(w io.Writer) error { return npy.Write(w, x) }
}
