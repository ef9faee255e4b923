package command

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

func (p Program) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure this build on this machine"}
	var asJSON, operations bool
	mem := &cobra.Command{
		Use:   "memory",
		Short: "Bytes of five networks: held, released promptly, donated, planned",
		Long: `memory runs five networks one operation at a time and says how many bytes that
took, weights aside: with every intermediate held to the end, with each released
after its last use, with each given up at its last use (so that results lie in
operands' bytes), with those results from an arena, and from a plan, which is run. The
floor of the single operations is the largest set of values that are needed at
one moment, each in as few bytes as the operators allow. A plan, which fuses
operations, may take less.`,
		Args: exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			rows, err := measureNetworks(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				e := json.NewEncoder(cmd.OutOrStdout())
				e.SetIndent("", "  ")
				return e.Encode(rows)
			}
			writeMemoryRows(cmd.OutOrStdout(), rows)
			if operations {
				writeOperations(cmd.OutOrStdout(), rows)
			}
			return nil
		},
	}
	mem.Flags().BoolVar(&asJSON, "json", false, "print the figures as JSON")
	mem.Flags().BoolVar(&operations, "operations", false, "also print the bytes that each operation reads, writes and allocates if its operands are given up")
	cmd.AddCommand(mem, p.transferCommand())
	wantCommand(cmd)
	return cmd
}

// memoryRow is one network's figures in bytes, the input counted and the
// weights not.
type memoryRow struct {
	Network  string `json:"network"`
	Held     usage  `json:"held"`
	Prompt   usage  `json:"prompt"`
	Donation usage  `json:"donation"`
	Pooled   usage  `json:"pooled"`
	Planned  usage  `json:"planned"` // as measured
	Promised int64  `json:"promised"`
	Floor    int64  `json:"floor"`

	Operations []eager.OperationStats `json:"operations"` // with donation
}

// usage is the bytes taken over a run, and the most at one moment.
type usage struct {
	Total int64 `json:"total"`
	Peak  int64 `json:"peak"`
}

type manner int

const (
	held manner = iota
	prompt
	donation
	pooled // donation, results from an arena
)

func measureNetworks(ctx context.Context) (rows []memoryRow, err error) {
	builders := []func() *network{reluChain, resnetBlock, transformerLayer, resnet50, encoder}
	var work work
	defer work.begin("measuring networks")()
	for i, build := range builders {
		work.to(stage{name: "measuring networks", done: int64(i), total: int64(len(builders))})
		r, err := measureMemory(ctx, build())
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func measureMemory(ctx context.Context, n *network) (memoryRow, error) {
	row := memoryRow{Network: n.name}
	weights, err := n.materialise()
	if err != nil {
		return row, err
	}
	defer func() {
		for _, w := range weights {
			if w != nil {
				_ = w.Release()
			}
		}
	}()
	var types []op.Type
	for m, u := range map[manner]*usage{held: &row.Held, prompt: &row.Prompt, donation: &row.Donation, pooled: &row.Pooled} {
		var operations []eager.OperationStats
		if *u, types, operations, err = n.runEagerly(weights, m); err != nil {
			return row, fmt.Errorf("%s: %w", n.name, err)
		}
		if m == donation {
			row.Operations = operations
		}
	}
	row.Floor = n.floor(types)
	if row.Planned, row.Promised, err = n.planned(ctx, weights); err != nil {
		return row, fmt.Errorf("%s: %w", n.name, err)
	}
	return row, nil
}

// materialise makes the weights, by number of value.
func (n *network) materialise() ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(n.values))
	for v, w := range n.values {
		if !w.isWeight() {
			continue
		}
		t, err := tensor.NewFor(memory.Weights, w.DType, w.Shape)
		if err != nil {
			return out, err
		}
		out[v] = t
		if w.ints == nil {
			continue
		}
		data, err := t.Lock()
		if err != nil {
			return out, err
		}
		for i, x := range w.ints {
			binary.NativeEndian.PutUint64(data.Data[8*i:], uint64(x))
		}
		data.Release()
	}
	return out, nil
}

// runEagerly runs the network one operation at a time, and says what that took,
// what type every value has, and what each operation moved.
func (n *network) runEagerly(weights []*tensor.Tensor, m manner) (usage, []op.Type, []eager.OperationStats, error) {
	runtime.GC() // what earlier runs dropped on the Go heap does not count, but buffers they forgot would
	before := memory.Stats().Total.Current
	memory.ResetPeak()
	arena, err := memory.NewArena(1<<36, memory.Activations)
	if err != nil {
		return usage{}, nil, nil, err
	}
	defer arena.CloseWhenIdle()
	options := []eager.Option{eager.ByOperation()}
	if m == pooled {
		options = append(options, eager.From(arena, eager.CopyOut))
	}
	s := eager.NewScope(options...)
	defer s.Close()
	values := slices.Clone(weights)
	values[0] = s.Adopt(tensor.New(n.input.DType, n.input.Shape))
	last := n.lastUses()
	for k, st := range n.steps {
		b := eager.Op(st.op).In(s)
		for i, a := range st.args {
			once := !slices.Contains(st.args[:i], a) && !slices.Contains(st.args[i+1:], a)
			if m >= donation && weights[a] == nil && last[a] == k && once {
				b.On(values[a].Reuse())
			} else {
				b.On(values[a])
			}
		}
		for _, a := range st.attrs {
			b.Attr(a)
		}
		if values[st.result], err = b.Run(); err != nil {
			return usage{}, nil, nil, err
		}
		for _, a := range st.args {
			if m != held && weights[a] == nil && last[a] == k && values[a].Alive() {
				if err := values[a].Release(); err != nil {
					return usage{}, nil, nil, err
				}
			}
		}
	}
	types := make([]op.Type, len(values))
	for v, t := range values {
		types[v] = op.Type{DType: t.DType(), Shape: t.Shape()}
	}
	in, err := n.input.Bytes()
	u := usage{Total: int64(in) + s.Stats().FreshBytes, Peak: memory.Stats().Total.Peak - before}
	if m == pooled { // the arena has kept all that it took
		a := arena.Stats()
		u.Total = int64(in) + a.Class + a.FreeListed
	}
	return u, types, s.Operations(), err
}

// floor is the largest set of values that are needed at one moment, when a
// result lies in the bytes of an operand that is read for the last time
// wherever the operator allows it.
func (n *network) floor(types []op.Type) int64 {
	last := n.lastUses()
	class := make([]int, len(types)) // values in the same bytes
	until := slices.Clone(last)      // by class
	for v := range class {
		class[v] = v
	}
	for k, s := range n.steps {
		for i, a := range s.args {
			if n.values[a].isWeight() {
				continue
			}
			c := class[a]
			kind := aliasKind(s.op, i)
			over := (kind == op.Same || kind == op.Accumulate) && until[c] == k && types[a] == types[s.result]
			over = over || s.op == "transpose" && until[c] == k
			if over || kind == op.View && s.op == "reshape" {
				class[s.result] = c
				until[c] = max(until[c], last[s.result])
				break
			}
		}
	}
	size := func(v int) int64 {
		b, _ := types[v].Bytes() // a type that was computed has a size
		return int64(b)
	}
	most, live, now := size(0), map[int]bool{0: true}, size(0)
	for k, s := range n.steps {
		if c := class[s.result]; !live[c] {
			live[c] = true
			now += size(c)
		}
		most = max(most, now)
		for c := range live {
			if until[c] <= k {
				delete(live, c)
				now -= size(c)
			}
		}
	}
	return most
}

// aliasKind returns the first alias rule of an operator for an operand.
func aliasKind(name string, arg int) op.AliasKind {
	for _, r := range op.Builtin().Lookup(name).Alias.Rules() {
		if r.Arg == arg || r.Arg == op.EveryArg {
			return r.Kind
		}
	}
	return 0
}

// planned runs the network as a program, its input given up, and returns the
// memory that it took and the plan's promise.
func (n *network) planned(ctx context.Context, weights []*tensor.Tensor) (took usage, promised int64, err error) {
	p, err := ir.Parse(n.String(), op.Builtin())
	if err != nil {
		return usage{}, 0, err
	}
	constants := ir.WeightMap{}
	for i, w := range weights {
		if w != nil {
			constants[fmt.Sprintf("w%d", i)], _ = w.UnsafeBytes()
		}
	}
	m, err := tenure.LoadProgram(p, constants)
	if err != nil {
		return usage{}, 0, err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return usage{}, 0, err
	}
	defer s.Close()
	x, err := tensor.New(n.input.DType, n.input.Shape)
	if err != nil {
		return usage{}, 0, err
	}
	in := tenure.Inputs{p.Body.Params[0].Name: x.Reuse()}
	planned, err := s.PlanFor(ctx, in) // which packs the weights: they do not count
	if err != nil {
		return usage{}, 0, errors.Join(err, x.Release())
	}
	runtime.GC()
	before := memory.Stats().Total.Current - int64(x.NumBytes())
	memory.ResetPeak()
	out, err := s.Run(ctx, in)
	if err != nil {
		return usage{}, 0, errors.Join(err, x.Release())
	}
	figures := memory.Stats().Total
	took = usage{Total: figures.Current - before, Peak: figures.Peak - before} // nothing was released
	return took, planned.PerRun(), out.Release()
}

func writeMemoryRows(out io.Writer, rows []memoryRow) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	cell := func(u usage) string { return plan.FormatBytes(u.Total) + " / " + plan.FormatBytes(u.Peak) }
	fmt.Fprintln(w, "total / peak\theld\tprompt\tdonation\tdonation, arena\tplanned\tfloor")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Network, cell(r.Held), cell(r.Prompt), cell(r.Donation), cell(r.Pooled),
			plan.FormatBytes(r.Planned.Peak), plan.FormatBytes(r.Floor))
		fmt.Fprintf(w, "  less than held\t\t%s\t%s\t%s\t%s\t\n", less(r.Prompt, r.Held), less(r.Donation, r.Held), less(r.Pooled, r.Held), less(r.Planned, r.Held))
	}
	_ = w.Flush() // the writer below keeps its error for the command
}

// writeOperations reports for each operation of a network how its operands'
// bytes were reused when they were given up.
func writeOperations(out io.Writer, rows []memoryRow) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for _, r := range rows {
		fmt.Fprintf(w, "\n%s\tcalls\tread\twritten\tcopied\tin place\tviews\tfresh\n", r.Network)
		for _, o := range r.Operations {
			fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d\t%d\t%s\n", o.Operation, o.Calls, plan.FormatBytes(o.ReadBytes), plan.FormatBytes(o.WrittenBytes),
				plan.FormatBytes(o.CopiedBytes), o.InPlace, o.Views, plan.FormatBytes(o.FreshBytes))
		}
	}
	_ = w.Flush() // the writer below keeps its error for the command
}

// less formats the difference to held.
func less(u, than usage) string {
	return fmt.Sprintf("%.0f%% / %.0f%%", 100-100*float64(u.Total)/float64(than.Total), 100-100*float64(u.Peak)/float64(than.Peak))
}
