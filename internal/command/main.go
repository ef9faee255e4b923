package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func init() { cobra.EnableCommandSorting = false } // help lists the commands in the order in which one needs them

// Program is what differs between the programs that have these commands.
type Program struct {
	Name    string  // as it is called
	Devices Devices // nil if it knows none
}

// Main runs the command line of the process and returns its exit code.
func (p Program) Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	return p.execute(ctx, os.Args[1:], os.Stdout, os.Stderr)
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

// conversion matches the words of Go's number parsing in errors of flags.
var conversion = regexp.MustCompile(`: strconv\.\w+: parsing "(?:[^"\\]|\\.)*": `)

func (p Program) execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := p.command()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "%s: %s\n", p.Name, oneLine(err.Error()))
	var hint hintError
	if errors.As(err, &hint) {
		for _, line := range hint.hints {
			fmt.Fprintf(stderr, "  %s\n", oneLine(line))
		}
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(stderr, "run \"%s help\" or add --help to a command\n", p.Name)
		return 2
	}
	return 1
}

// oneLine keeps an error on the line that scripts read, and what files and
// other processes have put into it from the terminal.
func oneLine(s string) string {
	return clean(strings.NewReplacer("\n", "; ", "\t", " ").Replace(strings.TrimSpace(s)))
}

func (p Program) command() *cobra.Command {
	root := &cobra.Command{
		Use:   p.Name,
		Short: "Run ONNX models in memory whose size is known before the run",
		Long: p.Name + ` runs ONNX models in memory whose size is known before the run.

Exit codes: 0 what was asked is done; 1 that failed, a check or a comparison did
not hold, or an interrupt stopped it; 2 the command line was not understood. A
second interrupt ends the process at once.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       p.version(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%s%s", prefix(cmd), conversion.ReplaceAllString(err.Error(), ": "))
	})
	root.AddCommand(runCommand(), planCommand(), checkCommand(), inspectCommand(), serverCommand(), shareCommand(), p.benchCommand(), p.devicesCommand())
	p.nameExamples(root)
	wantCommand(root)
	root.InitDefaultCompletionCmd()
	completion, _, _ := root.Find([]string{"completion"})
	wantCommand(completion)
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	show := help.Run
	help.Run, help.RunE = nil, func(cmd *cobra.Command, args []string) error {
		if _, rest, err := root.Find(args); err != nil || len(rest) > 0 {
			return usagef("help: got %q, want a command", strings.Join(args, " "))
		}
		show(cmd, args)
		return nil
	}
	return root
}

// called matches the name of the program in an example.
var called = regexp.MustCompile(`(?m)(^  |\| |\$\()tenure `)

// nameExamples makes the examples of all commands call this program.
func (p Program) nameExamples(cmd *cobra.Command) {
	cmd.Example = called.ReplaceAllString(cmd.Example, "${1}"+p.Name+" ")
	for _, c := range cmd.Commands() {
		p.nameExamples(c)
	}
}

// wantCommand makes it an error to call cmd, which only has commands of its
// own, without one of them.
func wantCommand(cmd *cobra.Command) {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	want := strings.Join(names, ", ")
	if i := strings.LastIndex(want, ", "); i >= 0 {
		want = want[:i] + " or " + want[i+2:]
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%sgot command %q, want %s", prefix(cmd), args[0], want)
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		_ = cmd.Help()
		return usagef("%sgot no command, want %s", prefix(cmd), want)
	}
}

// prefix is the words of a command, as errors begin with them: none for the
// program itself.
func prefix(cmd *cobra.Command) string {
	if _, words, ok := strings.Cut(cmd.CommandPath(), " "); ok {
		return words + ": "
	}
	return ""
}

// version returns the version of this build: of the module, or of the commit.
func (p Program) version() string {
	v := "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && v == "(devel)" {
				v = s.Value
			}
		}
	}
	return fmt.Sprintf("%s %s, %s %s/%s", p.Name, v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// modelFiles completes the first argument with model files.
func modelFiles(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return []string{"onnx", "ir"}, cobra.ShellCompDirectiveFilterFileExt
	}
	return nil, cobra.ShellCompDirectiveDefault
}

// exactly wants the arguments that are named.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for i, arg := range args[:min(len(args), len(names))] {
			if arg == "" {
				return usagef("%sgot an empty %s, want a name", prefix(cmd), names[i])
			}
		}
		if len(args) == len(names) {
			return nil
		}
		want := strings.Join(names, " ")
		if want == "" {
			want = "none"
		}
		return usagef("%sgot %s, want %s", prefix(cmd), countText(len(args), "argument", "arguments"), want)
	}
}
