package command

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

func inspectCommand() *cobra.Command {
	var shapes, ranges []string
	var asText, asJSON bool
	var after string
	cmd := &cobra.Command{
		Use:   "inspect MODEL",
		Short: "List inputs, outputs, operators, the program's text",
		Long: `inspect says in its first line whether a model will run, and lists what its file
declares: inputs and outputs, operators by count, opsets, weights, and what of
it is not supported.

--ir prints the program as it was loaded; with --shape for its open dimensions
it prints the final program of a run, and with --pass NAME the program after
that pass (` + passNames() + `).

` + aboutShapes + `

--range sequence=1..64 lists the structures instead that these sizes need: final
programs, each for many sizes, and what pins a program to one set of sizes.

--json prints one object. Its fields stay, and new ones may be added:
  runs: whether the model can be loaded, reason: why not, on one line, or "",
  model, producer, ir_version, opsets (domain to version),
  inputs, outputs: lists of {name, dtype, shape}; shape is a list with a number
    for a size, a string for a symbol and null for an unknown size, or null
    where not even the rank is known,
  operators (name to count), weights (their number), weight_bytes,
  unsupported, notes: lists of texts.`,
		Example: `  tenure inspect model.onnx
  tenure inspect model.onnx --ir --shape batch=1 --pass fuse`,
		Args:              exactly("MODEL"),
		ValidArgsFunction: modelFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			sizes, err := parseShapes(shapes)
			if err != nil {
				return err
			}
			if ranges != nil {
				if asText || asJSON || after != "" {
					return usagef("--range: want it without --ir, --pass and --json: it lists structures")
				}
				return inspectStructures(cmd, args[0], sizes, ranges)
			}
			if asText || after != "" {
				if asJSON {
					return usagef("--json: want the list, not --ir or --pass, which print a program's text")
				}
				return inspectText(reportTo(cmd.OutOrStdout()), args[0], sizes, after)
			}
			if len(sizes) > 0 {
				return usagef("--shape: want --ir or --pass with it: the list is of what the file declares")
			}
			return inspect(cmd.OutOrStdout(), args[0], asJSON)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&asText, "ir", false, "print the program's text")
	flags.StringVar(&after, "pass", "", "print the program after the pass `NAME`")
	flags.StringArrayVar(&shapes, "shape", nil, shapeHelp)
	flags.StringArrayVar(&ranges, "range", nil, "list the structures for sizes of an open dimension, `NAME=FROM..TO` or NAME=TO (again for more)")
	flags.BoolVar(&asJSON, "json", false, "print the list as JSON")
	return cmd
}

// inspectStructures says how many final programs a model needs over ranges of
// sizes.
func inspectStructures(cmd *cobra.Command, path string, given sizes, ranges []string) error {
	open, err := parseRanges(ranges)
	if err != nil {
		return err
	}
	f, err := formulasOf(cmd, path, given, open, nil, nil)
	if err != nil {
		return err
	}
	return f.Summary(reportTo(cmd.OutOrStdout()))
}

// summary is the report of inspect on a model.
type summary struct {
	Runs        bool             `json:"runs"`
	Reason      string           `json:"reason"`
	Model       string           `json:"model"`
	Producer    string           `json:"producer"`
	IRVersion   int64            `json:"ir_version"`
	Opsets      map[string]int64 `json:"opsets"`
	Inputs      []declared       `json:"inputs"`
	Outputs     []declared       `json:"outputs"`
	Operators   map[string]int   `json:"operators"`
	Weights     int              `json:"weights"`
	WeightBytes int64            `json:"weight_bytes"`
	Unsupported []string         `json:"unsupported"`
	Notes       []string         `json:"notes"`

	fault error // why the model cannot be loaded
}

// declared is an input or output as the file declares it. DType and Shape are
// those of the elements of a sequence or an optional, and of values of maps.
type declared struct {
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"` // "sequence of f32[n]", for what is no tensor
	DType string `json:"dtype"`
	Shape []any  `json:"shape"` // sizes, symbols, nil for an unknown size; nil for an unknown rank

	text string // all of it, for people
}

func declaredOf(v tenure.Info) declared {
	d := declared{Name: v.Name, DType: v.DType.String(), text: v.String()}
	if c := v.Of; c != nil {
		d.DType, d.Kind = c.DType.String(), strings.TrimPrefix(c.String(), c.Name+": ")
		v.Shape, v.Text = c.Shape, c.Text
	}
	if v.Text {
		d.DType = dtype.String.String()
	}
	if v.Shape == nil {
		return d
	}
	d.Shape = []any{}
	for _, dim := range v.Shape.Dims() {
		d.Shape = append(d.Shape, sizeOf(dim))
	}
	if v.Text {
		d.Shape = d.Shape[:len(d.Shape)-1] // the file does not have the width in bytes
	}
	return d
}

// sizeOf returns a number, a symbol, or nil for an unknown size.
func sizeOf(d shape.Dim) any {
	if n, ok := d.Size(); ok {
		return n
	}
	if symbol, ok := d.Symbol(); ok {
		return symbol
	}
	return nil
}

func inspect(w io.Writer, path string, asJSON bool) error {
	s, err := summarise(path)
	if err != nil {
		return err
	}
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(s)
	} else {
		err = s.print(reportTo(w))
	}
	switch {
	case err != nil || s.Runs:
	case len(s.Unsupported) > 0:
		err = fmt.Errorf("%s: the model does not run: %s", path, s.Reason)
	default:
		err = s.fault
	}
	return err
}

// whyNot says on one line why a model cannot be loaded.
func whyNot(err error) string {
	reasons := tenure.Unsupported(err)
	if len(reasons) == 0 {
		return strings.Join(strings.Fields(err.Error()), " ")
	}
	operators, nodes := tenure.CountUnsupported(err)
	if operators == 0 {
		return reasons[0]
	}
	return fmt.Sprintf("%s in %s: first %s", countText(operators, "operator is not supported", "operators are not supported"), countText(nodes, "node", "nodes"), reasons[0])
}

// summarise describes a model, also one that cannot be run.
func summarise(path string) (*summary, error) {
	if filepath.Ext(path) == programExt {
		return summariseProgram(path)
	}
	d, err := tenure.Describe(path)
	if err != nil {
		return nil, err
	}
	s := &summary{Model: path, Producer: strings.TrimSpace(d.Producer + " " + d.ProducerVersion), IRVersion: d.IRVersion, Opsets: d.Opsets,
		Inputs: []declared{}, Outputs: []declared{}, Operators: d.Operators, Weights: d.Weights, WeightBytes: d.WeightBytes, Unsupported: []string{}, Notes: []string{}}
	for _, v := range d.Inputs {
		s.Inputs = append(s.Inputs, declaredOf(v))
	}
	for _, v := range d.Outputs {
		s.Outputs = append(s.Outputs, declaredOf(v))
	}
	m, err := loadModel(path)
	if err != nil {
		s.Reason, s.fault = whyNot(err), err
		s.Unsupported = append(s.Unsupported, tenure.Unsupported(err)...)
		return s, nil
	}
	defer m.Close()
	s.Runs = true
	s.Notes = append(s.Notes, m.Notes()...)
	return s, nil
}

// summariseProgram describes the program of a text.
func summariseProgram(path string) (*summary, error) {
	m, err := loadModel(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s := &summary{Runs: true, Model: path, Opsets: map[string]int64{}, Inputs: []declared{}, Outputs: []declared{}, Operators: map[string]int{}, Unsupported: []string{}, Notes: []string{}}
	for _, v := range m.Inputs() {
		s.Inputs = append(s.Inputs, declaredOf(v))
	}
	for _, v := range m.Outputs() {
		s.Outputs = append(s.Outputs, declaredOf(v))
	}
	p := m.Program()
	p.Walk(func(_ *ir.Block, c *ir.Call) { s.Operators[c.Op.Name]++ })
	for _, w := range p.Weights {
		n, err := w.Type.Bytes()
		if err != nil {
			return nil, err
		}
		s.Weights++
		s.WeightBytes += int64(n)
	}
	s.Notes = append(s.Notes, m.Notes()...)
	return s, nil
}

func (s *summary) print(w io.Writer) error {
	var b strings.Builder
	if s.Runs {
		b.WriteString("runs       yes\n")
	} else {
		fmt.Fprintf(&b, "runs       no: %s\n", s.Reason)
	}
	fmt.Fprintf(&b, "model      %s\n", s.Model)
	if s.Producer != "" {
		fmt.Fprintf(&b, "producer   %s\n", s.Producer)
	}
	for _, domain := range slices.Sorted(maps.Keys(s.Opsets)) {
		name := domain
		if name == "" {
			name = "ai.onnx"
		}
		fmt.Fprintf(&b, "opset      %s %d\n", name, s.Opsets[domain])
	}
	list := func(title string, items []string) {
		for i, item := range items {
			if i > 0 {
				title = ""
			}
			fmt.Fprintf(&b, "%-10s %s\n", title, item)
		}
	}
	list("inputs", texts(s.Inputs))
	list("outputs", texts(s.Outputs))
	fmt.Fprintf(&b, "%-10s %d, %s\n", "weights", s.Weights, plan.FormatBytes(s.WeightBytes))
	names := slices.SortedFunc(maps.Keys(s.Operators), func(x, y string) int {
		if d := s.Operators[y] - s.Operators[x]; d != 0 {
			return d
		}
		return strings.Compare(x, y)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%5d %s", s.Operators[name], name)
	}
	list("operators", names)
	list("notes", s.Notes)
	list("missing", s.Unsupported)
	_, err := io.WriteString(w, b.String())
	return err
}

func texts(list []declared) (all []string) {
	for _, d := range list {
		all = append(all, d.text)
	}
	return all
}

func passNames() string { return strings.Join(tenure.Passes(), ", ") }

func inspectText(w io.Writer, path string, given sizes, after string) error {
	if after != "" && !slices.Contains(tenure.Passes(), after) {
		return usagef("--pass %s: want one of %s", after, passNames())
	}
	m, err := loadModel(path)
	if err != nil {
		return err
	}
	defer m.Close()
	if len(given) == 0 && after == "" {
		_, err := io.WriteString(w, m.Program().String())
		return err
	}
	b, err := given.bind(m)
	if err != nil {
		return err
	}
	text := ""
	p, err := m.Specialise(b.shapes, func(name string, p *ir.Program) error {
		if name == after {
			text = p.String() // of a pass that runs twice, the last time
		}
		return nil
	})
	if err != nil {
		return b.hint(err)
	}
	if after == "" {
		text = p.String()
	}
	_, err = io.WriteString(w, text)
	return err
}
