// Command concat computes three rows into one value in three ways, and prints
// what the plan of each says of memory.
//
//	go run ./examples/concat
//
// The programs are texts of package ir: concat_update.ir writes rows that were
// computed before, log_concat_update.ir computes each row where it is wanted,
// and own_kernel.ir uses an operator of this program, which says that it writes
// one row of its operand. None of them copies a row.
package main

import (
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"log"
	"math"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

//go:embed *.ir
var programs embed.FS

// logRow is an operator with a kernel of this program: it writes the logarithms
// of y over one row of x. The alias rule says so; all others follow from it:
// the text may say example.log_row_(%x, %y), and a plan gives the result no
// bytes of its own.
var logRow = &op.Def{
	Name: "example.log_row", Doc: "returns x with the logarithms of y in one row",
	MinArgs: 2, MaxArgs: 2,
	Attrs: []op.AttrDef{{Name: "row", Kind: op.Int, Needed: true}},
	Alias: op.Aliases(op.Rule{Arg: 0, Kind: op.Update}),
	Infer: func(s *op.Sig) error {
		x, y := s.Args[0], s.Args[1]
		if x.IsStatic() && y.IsStatic() {
			if row := s.Int("row"); x.Shape.Rank() == 0 || row < 0 || row >= int64(x.Shape.Size(0)) ||
				x.DType != dtype.F32 || y.DType != dtype.F32 || y.Shape.NumElements()*x.Shape.Size(0) != x.Shape.NumElements() {
				return fmt.Errorf("row %d of %s: got %s, want one of its rows, and as many f32: %w", row, x, y, shape.ErrShape)
			}
		}
		s.Results[0] = x
		return nil
	},
	Kernel: func(c *op.Call) error {
		x, y, out := c.In[0].Data, c.In[1].Data, c.Out[0].Data
		if &x[0] != &out[0] {
			copy(out, x) // the caller has no bytes to write into
		}
		row := out[int(c.Int("row"))*len(y):]
		for i := 0; i < len(y); i += 4 {
			v := math.Float32frombits(binary.LittleEndian.Uint32(y[i:]))
			binary.LittleEndian.PutUint32(row[i:], math.Float32bits(float32(math.Log(float64(v)))))
		}
		return nil
	},
}

func main() {
	log.SetFlags(0)
	for _, name := range []string{"concat_update", "log_concat_update", "own_kernel"} {
		if err := run(name); err != nil {
			log.Fatal(err)
		}
	}
}

// run loads a program, prints what its plan says, and runs it.
func run(name string) (err error) {
	registry, err := op.Builtin().With(logRow)
	if err != nil {
		return err
	}
	text, err := programs.ReadFile(name + ".ir")
	if err != nil {
		return err
	}
	p, err := ir.Parse(string(text), registry)
	if err != nil {
		return err
	}
	m, err := tenure.LoadProgram(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	in := tenure.Inputs{}
	var donated []string
	for _, v := range m.Inputs() {
		x, err := tensor.Full[float32](math.E, v.Shape.Sizes()...)
		if err != nil {
			return err
		}
		if in[v.Name] = x; v.Name == "x" {
			in[v.Name], donated = x.Donate(), append(donated, v.Name)
			continue
		}
		defer x.Release()
	}
	plan, err := m.Plan(context.Background(), nil, tenure.WithDonated(donated...))
	if err != nil {
		return err
	}
	s, err := m.NewSession()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	out, err := s.Run(context.Background(), in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Release()) }()
	y := m.Outputs()[0].Name
	last, err := tensor.At[float32](out[y], 2, 7)
	fmt.Printf("%-18s arena %d bytes, %d results in place, %d copies; %s[2,7] = %.3f\n", name, plan.ArenaBytes, len(plan.InPlace), len(plan.Copies), y, last)
	return err
}
