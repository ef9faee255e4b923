package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/share"
)

func listCommand() *cobra.Command {
	var f placeFlags
	var asJSON, blocks bool
	cmd := &cobra.Command{
		Use:   "list [NAME]",
		Short: "List names, arenas, published tensors, and the holders of leases",
		Long: `list asks every process that has a name, or the one behind NAME, for its arenas,
the tensors that it has published, and the leases: which process holds how many
bytes of it, and since when. A lease with the state "ticket" is an unclaimed
ticket. Bytes in limbo are released by their owner and still held by others.

Without a NAME it also lists the weights that processes have in common
(tenure run --shared-weights), and these processes.

Names whose process was killed are cleared away, and said so once.`,
		Args: optional("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := f.look(cmd.Context(), args)
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				err = e.Encode(all)
			} else {
				err = all.print(cmd.OutOrStdout(), blocks)
			}
			return errors.Join(err, failures(all.Names))
		},
	}
	f.addDir(cmd)
	cmd.Flags().BoolVar(&blocks, "blocks", false, "list every block")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print everything as JSON")
	return cmd
}

// optional wants the argument that is named, or none.
func optional(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) <= 1 {
			return nil
		}
		return usagef("%sgot %d arguments, want %s or none", prefix(cmd), len(args), name)
	}
}

// listing is the output of list.
type listing struct {
	Names  []ownerState        `json:"names"`
	Common []share.CommonBytes `json:"common"`
}

// ownerState is the entry of a name.
type ownerState struct {
	Name  string       `json:"name"`
	Stale bool         `json:"stale"` // its process was killed; the name is cleared away
	Error string       `json:"error,omitempty"`
	State *share.State `json:"state,omitempty"`
}

// look asks all processes that share something, or the owner behind a name.
func (f *placeFlags) look(ctx context.Context, args []string) (l listing, err error) {
	l.Common = []share.CommonBytes{}
	if l.Names, err = f.owners(ctx, args); err != nil || len(args) > 0 {
		return l, err
	}
	common, err := share.ListCommon(ctx, f.options()...)
	l.Common = append(l.Common, common...)
	return l, err
}

// owners asks all owners, or the named one, for their state.
func (f *placeFlags) owners(ctx context.Context, args []string) ([]ownerState, error) {
	if len(args) == 1 {
		o := f.ask(ctx, args[0])
		if o.Error != "" {
			return nil, errors.New(o.Error)
		}
		return []ownerState{o}, nil
	}
	names, err := share.Names(f.options()...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b share.Name) int { return cmp.Compare(a.Name, b.Name) })
	owners := make([]ownerState, len(names))
	var asking sync.WaitGroup
	for i, n := range names {
		owners[i] = ownerState{Name: n.Name, Stale: n.Stale}
		if !n.Stale {
			asking.Go(func() { owners[i] = f.ask(ctx, n.Name) })
		}
	}
	asking.Wait()
	return owners, nil
}

func (f *placeFlags) ask(ctx context.Context, name string) ownerState {
	o := ownerState{Name: name}
	ctx, cancel := context.WithTimeout(ctx, answerTime+f.wait)
	defer cancel()
	err := f.with(ctx, name, func(ctx context.Context, p *share.Peer) (err error) {
		o.State, err = p.State(ctx)
		return err
	})
	if err != nil {
		o.Error = oneLine(err.Error())
	}
	return o
}

// failures is the error of the owners that did not answer.
func failures(owners []ownerState) error {
	n := 0
	for _, o := range owners {
		if o.Error != "" {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d names did not answer", n, len(owners))
}

func (l listing) print(w io.Writer, blocks bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, o := range l.Names {
		if i > 0 {
			fmt.Fprintln(t)
		}
		switch {
		case o.Stale:
			fmt.Fprintf(t, "%s: its process was killed; the name is cleared away\n", o.Name)
		case o.Error != "":
			fmt.Fprintf(t, "%s: %s\n", o.Name, clean(o.Error))
		default:
			printState(t, o.Name, o.State, blocks)
		}
	}
	for i, c := range l.Common {
		if i > 0 || len(l.Names) > 0 {
			fmt.Fprintln(t)
		}
		fmt.Fprintf(t, "common %s\n", commonText(c))
		for _, h := range c.Holders {
			state := "has"
			if h.Silent {
				state = "silent"
			}
			fmt.Fprintf(t, "  %s\t%d %s\n", state, h.PID, clean(h.Command))
		}
	}
	if len(l.Names)+len(l.Common) == 0 {
		fmt.Fprintln(t, "no process shares tensors here")
	}
	return t.Flush()
}

// commonText sums up bytes that processes have in common.
func commonText(c share.CommonBytes) string {
	size := plan.FormatBytes(int64(c.Bytes))
	if c.Bytes == 0 {
		size = "of unknown size, because no process answers,"
	}
	return fmt.Sprintf("%.16s: %s in %s", c.Key, size, countText(len(c.Holders), "process", "processes"))
}

func printState(w io.Writer, name string, s *share.State, blocks bool) {
	fmt.Fprintf(w, "%s: %s\n", name, headline(s))
	for _, a := range s.Arenas {
		state := "used " + plan.FormatBytes(int64(a.Used))
		if a.Foreign {
			state += " in place"
		}
		if a.Retired {
			state = "given back, still mapped"
		}
		fmt.Fprintf(w, "  arena\t%s\t%s\t%s\t%s\t%s\n", a.ID, plan.FormatBytes(int64(a.Bytes)), state, blocksText(s, a), countText(a.Peers, "peer", "peers"))
		if !blocks {
			continue
		}
		for _, b := range s.Blocks {
			if b.Arena == a.ID {
				fmt.Fprintf(w, "    block\t%d\t%s\t%s\t%s\n", b.Offset, plan.FormatBytes(int64(b.Bytes)), b.State, countText(b.Refs, "reference", "references"))
			}
		}
	}
	for _, l := range s.Leases {
		fmt.Fprintf(w, "  %s\t%d %s\t%s\t%s\t%s\t%q\n", l.State, l.PID, clean(l.Command), plan.FormatBytes(int64(l.Bytes)), ageText(l.AgeMS), fmt.Sprintf("%s+%d", l.Arena, l.Offset), l.Label)
	}
	for _, n := range s.Names {
		fmt.Fprintf(w, "  tensor\t%q\t%s%s\t%s\n", n.Name, clean(n.DType), dims(n.Shape), plan.FormatBytes(int64(n.Bytes)))
	}
}

// headline sums an owner up.
func headline(s *share.State) string {
	b := s.Bytes
	text := fmt.Sprintf("process %d (%s), %s in %s", s.PID, clean(s.Command), plan.FormatBytes(b.Used), countText(len(s.Arenas), "arena", "arenas"))
	text += " of " + plan.FormatBytes(b.Arenas)
	if b.Limit > 0 {
		text += ", limit " + plan.FormatBytes(b.Limit)
	}
	if b.Copied > 0 {
		text += ", copied " + plan.FormatBytes(b.Copied)
	}
	return text + fmt.Sprintf("; %s, %s in limbo", countText(len(s.Leases), "lease", "leases"), plan.FormatBytes(b.Limbo))
}

// blocksText counts the blocks of an arena by state.
func blocksText(s *share.State, a share.ArenaState) string {
	states := map[string]int{}
	for _, b := range s.Blocks {
		if b.Arena == a.ID {
			states[b.State]++
		}
	}
	var parts []string
	for _, state := range []string{"owned", "shared", "limbo"} {
		if states[state] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
		}
	}
	if len(parts) == 0 {
		return "no blocks"
	}
	return strings.Join(parts, ", ")
}

func countText(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func ageText(ms int64) string {
	age := time.Duration(ms) * time.Millisecond
	if age >= time.Second {
		age = age.Round(time.Second)
	}
	return age.String()
}

func dims(shape []int) string {
	var parts []string
	for _, n := range shape {
		parts = append(parts, fmt.Sprint(n))
	}
	return "[" + strings.Join(parts, ",") + "]"
}
