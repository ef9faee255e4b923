package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// answer is the result of a run, printed as text or as JSON.
type answer struct {
	out      tenure.Outputs // of the run
	infos    []tenure.Info  // what is printed: tensors, and elements of sequences
	shown    tenure.Outputs // of these
	views    tenure.Sequence
	from     []int    // by place in infos: the file's output
	empty    []string // outputs of which there is nothing to print
	plan     *plan.Plan
	promised string // what the plan's figures are for, "" for the sizes of the run
	took     time.Duration
	top      int
	measured int64
	shared   int64           // bytes of weights
	compared []comparison    // nil unless asked for
	files    []string        // by place in infos; nil unless the outputs were saved
	saved    []string        // all files
	profile  *tenure.Profile // nil unless asked for
	trace    string          // the file in which it was saved, "" for none
}

// maxPrinted is how many elements of an output are printed whole.
const maxPrinted = 64

func (a *answer) print(w io.Writer, profile bool) error {
	var b strings.Builder
	for _, info := range a.infos {
		fmt.Fprintf(&b, "%s: ", info.Name)
		if info.Text {
			printText(&b, a.shown[info.Name])
			continue
		}
		printTensor(&b, a.shown[info.Name], a.top)
	}
	for _, text := range a.empty {
		fmt.Fprintln(&b, text)
	}
	for _, file := range a.saved {
		fmt.Fprintf(&b, "saved %s\n", file)
	}
	if a.trace != "" {
		fmt.Fprintf(&b, "saved %s\n", a.trace)
	}
	for _, c := range a.compared {
		state := "equal within the tolerance"
		if !c.Equal {
			state = "DIFFERS, " + c.Says
		}
		fmt.Fprintf(&b, "compare %s: %s (largest difference %.3g)\n", c.Output, state, c.Max)
	}
	p := a.plan
	fmt.Fprintf(&b, "memory: promised %s%s (arena %s, scratch %s, inputs and outputs %s), measured %s; weights %s"+sharedNote(a.shared)+"\n",
		plan.FormatBytes(promised(p)), a.promised, plan.FormatBytes(p.ArenaBytes), plan.FormatBytes(p.ScratchBytes), plan.FormatBytes(p.IOBytes),
		plan.FormatBytes(a.measured), plan.FormatBytes(p.WeightBytes))
	fmt.Fprintf(&b, "time: %s for %d steps\n", a.took.Round(10*time.Microsecond), len(p.Steps))
	if profile {
		b.WriteByte('\n')
		if err := a.profile.Report(&b); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sharedNote reports how much of the weights is shared memory.
func sharedNote(shared int64) string {
	if shared == 0 {
		return ""
	}
	return ", of which " + plan.FormatBytes(shared) + " are shared"
}

// typeOf returns the type of an output as people and JSON are told it.
func typeOf(info tenure.Info, x *tensor.Tensor) (name string, dims []int) {
	dims = append([]int{}, x.Shape().Sizes()...)
	if info.Text {
		return dtype.String.String(), dims[:len(dims)-1]
	}
	return x.DType().String(), dims
}

// printText prints strings, the first ones of many.
func printText(b *strings.Builder, x *tensor.Tensor) {
	list, err := tensor.Strings(x)
	if err != nil {
		fmt.Fprintln(b, err)
		return
	}
	info := tenure.Info{DType: x.DType(), Shape: x.Shape(), Text: true}
	_, typ, _ := strings.Cut(info.String(), ": ")
	fmt.Fprintf(b, "%s %q\n", typ, list[:min(len(list), maxPrinted)])
	if n := len(list); n > maxPrinted {
		fmt.Fprintf(b, "  (the first %d of %d)\n", maxPrinted, n)
	}
}

// printTensor prints the type and shape, and the largest elements of scores,
// all of a small tensor, or statistics of a large one.
func printTensor(b *strings.Builder, x *tensor.Tensor, top int) {
	if rows := topOf(x, top); rows != nil {
		fmt.Fprintf(b, "%s%s\n", x.DType(), x.Shape())
		printTop(b, rows, x.NumElements()/len(rows))
		return
	}
	values, err := tensor.Float64s(x)
	if len(values) <= maxPrinted || err != nil {
		b.WriteString(strings.ReplaceAll(strings.TrimSpace(x.String()), "\n", "\n  ") + "\n")
		return
	}
	low, high, sum, odd := math.Inf(1), math.Inf(-1), 0.0, 0
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			odd++
			continue
		}
		low, high, sum = min(low, v), max(high, v), sum+v
	}
	fmt.Fprintf(b, "%s%s\n", x.DType(), x.Shape())
	if n := len(values) - odd; n > 0 {
		fmt.Fprintf(b, "  from %.6g to %.6g, mean %.6g\n", low, high, sum/float64(n))
	}
	if odd > 0 {
		fmt.Fprintf(b, "  %d of %d elements are NaN or infinite\n", odd, len(values))
	}
}

// ranked is one element of a row.
type ranked struct {
	Index int    `json:"index"`
	Value number `json:"value"`
}

// topOf returns the n largest elements of each row of scores: floats that are,
// dimensions of size 1 aside, one row or a few long ones. Other tensors give
// nil.
func topOf(x *tensor.Tensor, n int) [][]ranked {
	const maxRows = 8
	dims := slices.DeleteFunc(slices.Clone(x.Shape().Sizes()), func(size int) bool { return size == 1 })
	if n == 0 || !x.DType().IsFloat() || x.NumElements() == 0 || len(dims) == 0 || len(dims) > 2 || len(dims) == 2 && dims[0] >= min(dims[1], maxRows+1) {
		return nil
	}
	data, err := tensor.Float64s(x)
	if err != nil {
		return nil // a type without an order
	}
	var rows [][]ranked
	for values := range slices.Chunk(data, dims[len(dims)-1]) {
		row := make([]ranked, len(values))
		for i, v := range values {
			row[i] = ranked{i, number(v)}
		}
		slices.SortStableFunc(row, func(a, b ranked) int { return cmp.Compare(b.Value, a.Value) }) // NaN last
		rows = append(rows, row[:min(n, len(row))])
	}
	return rows
}

func printTop(b *strings.Builder, rows [][]ranked, width int) {
	for i, row := range rows {
		if len(rows) > 1 {
			fmt.Fprintf(b, "  row %d\n", i)
		}
		for _, r := range row {
			fmt.Fprintf(b, "  %6d  %.6g\n", r.Index, r.Value)
		}
	}
	if n := len(rows[0]); n < width {
		fmt.Fprintf(b, "  (the largest %d of %d)\n", n, width)
	}
}

// number is a float that JSON holds also where it is not finite, as "NaN",
// "+Inf" or "-Inf".
type number float64

// MarshalJSON writes the number, or its name.
func (n number) MarshalJSON() ([]byte, error) {
	if v := float64(n); math.IsNaN(v) || math.IsInf(v, 0) {
		return json.Marshal(fmt.Sprint(v))
	}
	return json.Marshal(float64(n))
}

// maxListed is how many elements of an output JSON holds; --output saves all.
const maxListed = 1000

type outputJSON struct {
	Name   string     `json:"name"`
	DType  string     `json:"dtype"`
	Shape  []int      `json:"shape"`
	Top    [][]ranked `json:"top,omitempty"`
	Values any        `json:"values,omitempty"` // in row-major order
	File   string     `json:"file,omitempty"`
}

type answerJSON struct {
	Outputs       []outputJSON  `json:"outputs"`
	Compared      []comparison  `json:"compared,omitempty"`
	ArenaBytes    int64         `json:"arena_bytes"`
	ScratchBytes  int64         `json:"scratch_bytes"`
	IOBytes       int64         `json:"io_bytes"`
	WeightBytes   int64         `json:"weight_bytes"`
	SharedBytes   int64         `json:"shared_bytes,omitempty"` // of the weights, with --shared-weights
	PromisedBytes int64         `json:"promised_bytes"`         // arena, scratch, inputs and outputs
	MeasuredBytes int64         `json:"measured_bytes"`         // of the same
	Seconds       float64       `json:"seconds"`
	Profile       []profileJSON `json:"profile,omitempty"`
}

// profileJSON sums the steps of a node, or those of an operator that come from
// none.
type profileJSON struct {
	Op           string  `json:"op"`
	Node         string  `json:"node,omitempty"`
	Steps        int     `json:"steps"`
	Seconds      float64 `json:"seconds"`
	ReadBytes    int64   `json:"read_bytes"`
	WrittenBytes int64   `json:"written_bytes"`
	LiveBytes    int64   `json:"live_bytes"`
}

func (a *answer) json(profile bool) answerJSON {
	p := a.plan
	j := answerJSON{Compared: a.compared, ArenaBytes: p.ArenaBytes, ScratchBytes: p.ScratchBytes, IOBytes: p.IOBytes,
		WeightBytes: p.WeightBytes, SharedBytes: a.shared, PromisedBytes: promised(p), MeasuredBytes: a.measured, Seconds: a.took.Seconds()}
	if profile {
		for _, s := range a.profile.ByNode() {
			j.Profile = append(j.Profile, profileJSON{s.Op, s.Node, s.Count, s.Took.Seconds(), s.Read, s.Written, s.Live})
		}
	}
	for i, info := range a.infos {
		x := a.shown[info.Name]
		o := outputJSON{Name: info.Name}
		o.DType, o.Shape = typeOf(info, x)
		if info.Text {
			o.Values = textOf(x)
		} else if o.Top = topOf(x, a.top); x.NumElements() <= maxListed {
			o.Values = valuesOf(x)
		}
		if a.files != nil {
			o.File = a.files[i]
		}
		j.Outputs = append(j.Outputs, o)
	}
	return j
}

// textOf returns the strings of an output, unless there are too many.
func textOf(x *tensor.Tensor) any {
	list, err := tensor.Strings(x)
	if err != nil || len(list) > maxListed {
		return nil
	}
	return list
}

// valuesOf returns the elements as JSON holds them exactly, nil for types that
// it has not.
func valuesOf(x *tensor.Tensor) any {
	switch x.DType() {
	case dtype.I64:
		return integers[int64](x)
	case dtype.U64:
		return integers[uint64](x)
	}
	values, err := tensor.Float64s(x)
	if err != nil {
		return nil
	}
	list := make([]number, len(values))
	for i, v := range values {
		list[i] = number(v)
	}
	return list
}

// integers reads what float64 does not hold exactly.
func integers[T int64 | uint64](x *tensor.Tensor) any {
	v, err := tensor.Read[T](x)
	if err != nil {
		return nil
	}
	defer v.Release()
	return slices.Clone(v.Data)
}
