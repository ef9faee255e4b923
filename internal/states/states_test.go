package states_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/states"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

func Example() {
	p, err := ir.Parse(`func @f(%x: f32[1,n,4], %past: f32[1,m,4]) {
		%present = concat(%past, %x) {axis = 1}
		%y = neg(%present)
		return %y, %present
	}`, op.Builtin())
	if err != nil {
		panic(err)
	}
	r, err := states.Rewrite(p, []states.Pair{{Input: 1, Output: 1}}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v %+v\n", r.States[0], r.Groups[0])
	for _, v := range p.Body.Params {
		fmt.Println(v, v.Type)
	}
	for _, c := range p.Body.Calls {
		if name := c.Op.Name; name == "tensor_scatter" || name == "slice" {
			fmt.Println(c)
		}
	}
	// Output:
	// {Pair:{Input:1 Output:1} Kind:2 Axis:1 Group:0 Why:} {Length:2 Sizes:3 Rows:2 Masks:[]}
	// %x f32[1,n,4]
	// %past f32[1,capacity,4]
	// %states.length i64[1]
	// %states.sizes u8[m,0]
	// %present.buffer = tensor_scatter(%past, %x, %past.at) {axis = 1}
	// %present = slice(%present.buffer, %states.number, %present.end, %states.number.1)
}

func ExampleRewriteBlocks() {
	p, err := ir.Parse(`func @f(%x: f32[batch,2,n,4], %k: f32[batch,2,m,4], %v: f32[batch,2,m,4]) {
		%y, %next_k, %next_v = attention(%x, %x, %x, _, %k, %v) {is_causal = 1}
		return %y, %next_k, %next_v
	}`, op.Builtin())
	if err != nil {
		panic(err)
	}
	r, err := states.RewriteBlocks(p, []states.Pair{{Input: 1, Output: 1}, {Input: 2, Output: 2}}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%+v %d %q\n", r.Groups[0], r.Table, r.Even)
	for _, v := range p.Body.Params {
		fmt.Println(v, v.Type)
	}
	for _, c := range p.Body.Calls {
		if strings.HasPrefix(c.Op.Name, "block") {
			fmt.Println(c)
		}
	}
	// Output:
	// {Length:3 Sizes:-1 Rows:3 Masks:[]} 4 ""
	// %x f32[batch,2,n,4]
	// %k f32[blocks,2,block_rows,4]
	// %v f32[blocks,2,block_rows,4]
	// %states.length i64[batch]
	// %states.table i64[batch,table]
	// %next_k.pool = block_scatter(%k, %x, %states.table, %states.length)
	// %next_v.pool = block_scatter(%v, %x, %states.table, %states.length)
	// %y = block_attention(%x, %next_k.pool, %next_v.pool, %states.table, %y.keys) {is_causal = 1}
}

// A rewritten program keeps the invariants of programs, whatever reads the
// state.
func TestRewrittenProgramsHold(t *testing.T) {
	for name, text := range map[string]string{
		"nobody reads the past": `%present = concat(%past, %x) {axis = 1} return %present, %x`,
		"the past is read":      `%present = concat(%past, %x) {axis = 1} %y = neg(%past) return %present, %y`,
		"a region reads it": `%present = concat(%past, %x) {axis = 1}
			%c = constant() {dtype = bool, ints = [1]}
			%y = if(%c) { %a = neg(%past) return %a } { %b = abs(%present) return %b } return %present, %y`,
		"twice an output": `%present = concat(%past, %x) {axis = 1} return %present, %present`,
	} {
		p, err := ir.Parse("func @f(%x: f32[2,n,4], %past: f32[2,m,4]) {"+text+"}", op.Builtin())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, err := states.Rewrite(p, []states.Pair{{Input: 1, Output: 0}}, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := ir.Verify(p); err != nil {
			t.Errorf("%s: %v\n%s", name, err, p)
		}
		if r.States[0].Kind != states.Appended {
			t.Errorf("%s: got %+v, want a state to which rows are appended", name, r.States[0])
		}
		reads := strings.Contains(p.String(), "slice(")
		if want := name != "nobody reads the past"; reads != want || (r.Groups[0].Sizes >= 0) != want {
			t.Errorf("%s: got slices of the buffer %v, sizes at %d, want some: %v", name, reads, r.Groups[0].Sizes, want)
		}
	}
}

// An input that is returned as it came has no bytes of its own.
func TestReturnedState(t *testing.T) {
	p, err := ir.Parse(`func @f(%x: f32[2,n,4], %past: f32[2,m,4]) { %present = concat(%past, %x) {axis = 1} return %present, %past }`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := states.Rewrite(p, []states.Pair{{Input: 1, Output: 0}}, nil); err == nil || !strings.Contains(err.Error(), "returned as it came") {
		t.Errorf("got error %v, want one that names the state", err)
	}
}
