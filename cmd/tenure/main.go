// Command tenure runs ONNX models in memory whose size is known before the
// run, and shows what a run will take.
//
//	tenure run MODEL       run a model on files and print or save the answer
//	tenure plan MODEL      say what a run will take, before any run
//	tenure check MODEL P   prove a stored plan against a model
//	tenure inspect MODEL   list inputs, outputs, operators, the program's text
//	tenure share serve F   lend tensors to other processes; list, get, drop, watch
//
// It exits with 0 when it did what was asked, 1 when that failed, 2 when it
// was asked in a way that it does not understand. Reports go to standard
// output, errors, in one line (and lines with hints, indented), and progress
// to standard error. Files are written whole or not at all. Memory is that
// of one run; nothing is kept.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(Main()) }

// Main runs the command line of the process and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
}

// usageError is the error of a command line that is not understood.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// hintError is an error with lines that say how to mend it.
type hintError struct {
	error
	hints []string
}

func (e hintError) Unwrap() error { return e.error }

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "tenure: %s\n", oneLine(err.Error()))
	var hint hintError
	if errors.As(err, &hint) {
		for _, line := range hint.hints {
			fmt.Fprintf(stderr, "  %s\n", line)
		}
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "run \"tenure help\" or add --help to a command\n")
		return 2
	}
	return 1
}

// oneLine keeps an error on the line that scripts read.
func oneLine(s string) string { return strings.ReplaceAll(strings.TrimSpace(s), "\n", "; ") }

func command() *cobra.Command {
	root := &cobra.Command{
		Use:   "tenure",
		Short: "Run ONNX models in memory whose size is known before the run",
		Long: `tenure runs ONNX models in memory whose size is known before the run.

Exit codes: 0 done, 1 the run or the check failed, 2 the command line was not understood.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("got command %q, want run, plan, check, inspect, share or bench", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			_ = cmd.Help()
			return usagef("got no command, want run, plan, check, inspect, share or bench")
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s: %w", cmd.Name(), err)
	})
	root.AddCommand(runCommand(), planCommand(), checkCommand(), inspectCommand(), shareCommand(), benchCommand())
	return root
}

// exactly wants the arguments that are named.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usagef("%s: got %d arguments, want %s", cmd.Name(), len(args), strings.Join(names, " "))
	}
}
