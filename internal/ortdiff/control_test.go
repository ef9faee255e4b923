package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

// body makes a nested graph of nodes in a chain: the first output of each is
// the first operand of the next one.
func body(params []typed, outputs []string, nodes ...*node) *graph {
	g := &graph{params: params, nodes: nodes}
	for _, name := range outputs {
		g.outputs = append(g.outputs, typed{name: name})
	}
	return g
}

func simple(op, out string, in ...string) *node { return &node{op: op, in: in, out: []string{out}} }

func init() {
	generators["If"] = func(d *drawer) {
		d.node("If")
		d.operand(d.value(dtype.Bool, []int{}, []byte{byte(d.IntN(2))}, d.chance(0.3)))
		dims := d.dims(0, 3)
		x := d.value(dtype.F32, dims, d.data(dtype.F32, elements(dims)), false)
		y := d.value(dtype.F32, dims, d.data(dtype.F32, elements(dims)), false)
		branch := func(to string) *graph {
			switch d.IntN(3) {
			case 0:
				return body(nil, []string{to}, simple("Neg", to, x.name))
			case 1:
				return body(nil, []string{to}, simple("Add", to+"t", x.name, y.name), simple("Relu", to, to+"t"))
			}
			return body(nil, []string{to}, simple("Identity", to, y.name))
		}
		d.attr("then_branch", branch("t"))
		d.attr("else_branch", branch("e"))
		d.outs(1)
	}
	generators["Loop"] = func(d *drawer) {
		d.node("Loop")
		trips := d.between(0, 4)
		d.operand(d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(trips)), d.chance(0.5)))
		if d.chance(0.5) {
			d.operand(d.value(dtype.Bool, []int{}, []byte{1}, d.chance(0.5)))
		} else {
			d.skip()
		}
		dims := d.dims(0, 2)
		d.in(dtype.F32, dims...)
		outer := d.value(dtype.F32, dims, d.data(dtype.F32, elements(dims)), false)
		params := []typed{{"i", dtype.I64, []int{}}, {"go", dtype.Bool, []int{}}, {"s", dtype.F32, dims}}
		nodes := []*node{simple("Identity", "on", "go"), simple("Add", "s1", "s", outer.name)}
		if d.chance(0.5) { // stops by itself
			nodes[0] = simple("Less", "on", "i", d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(0, 3))), true).name)
		}
		outputs, n := []string{"on", "s1"}, 1
		if trips > 0 && d.chance(0.5) {
			nodes = append(nodes, simple("Mul", "o", "s", "s1"))
			outputs, n = append(outputs, "o"), 2
		}
		d.attr("body", body(params, outputs, nodes...))
		d.outs(n)
	}
	generators["Scan"] = func(d *drawer) {
		d.node("Scan")
		inputs, time := d.between(1, 2), d.between(1, 4)
		cell := full(d.dims(1, 2))
		d.in(dtype.F32, cell...)
		params := []typed{{"s", dtype.F32, cell}}
		axes, dirs := make([]int, inputs), make([]int, inputs)
		for i := range inputs {
			axes[i], dirs[i] = d.between(0, len(cell)), d.IntN(2)
			x := append(append(clone(cell[:axes[i]]), time), cell[axes[i]:]...)
			d.in(dtype.F32, x...)
			params = append(params, typed{string(rune('a' + i)), dtype.F32, cell})
		}
		d.attr("num_scan_inputs", inputs)
		d.maybe("scan_input_directions", dirs)
		d.attr("scan_input_axes", axes)
		at := d.between(0, len(cell))
		if at > 0 || d.chance(0.3) {
			d.attr("scan_output_axes", []int{at})
		}
		d.maybe("scan_output_directions", []int{d.IntN(2)})
		nodes := []*node{simple("Add", "s1", "s", "a"), simple("Mul", "o", "s1", params[inputs].name)}
		d.attr("body", body(params, []string{"s1", "o"}, nodes...))
		d.outs(2)
	}
	sequences()
}

// sequences are drawn as models of several nodes: a sequence is no input here.
// Positions and sizes of parts are constants, or inputs: then the sequence is
// packed from there on.
func sequences() {
	list := func(d *drawer, n int) (dt dtype.DType, dims []int, parts []string) {
		dt, dims = pick(d, dtype.F32, dtype.I64), full(d.dims(1, 3))
		for range n {
			parts = append(parts, d.value(dt, dims, d.data(dt, elements(dims)), d.chance(0.3)).name)
		}
		return dt, dims, parts
	}
	add := func(d *drawer, op string, out string, in []string, attrs ...attr) {
		d.n = &node{op: op, in: in, out: []string{out}, attrs: attrs}
		d.m.graph.nodes = append(d.m.graph.nodes, d.n)
	}
	result := func(d *drawer, name string) { d.m.graph.outputs = append(d.m.graph.outputs, typed{name: name}) }
	at := func(d *drawer, n, signed int) string {
		return d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(-n, n-1+signed))), d.chance(0.6)).name
	}
	// open appends a value to a sequence and takes it out again, at a position
	// that is not known at load.
	open := func(d *drawer, n int) {
		if d.chance(0.5) {
			return
		}
		last := func(at int) string { return d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(at)), false).name }
		d.m.graph.nodes[len(d.m.graph.nodes)-1].out[0] = "s0"
		add(d, "SequenceInsert", "s1", []string{"s0", d.m.values[0].name, last(n)})
		add(d, "SequenceErase", "s", []string{"s1", last(-1)})
	}
	for name, last := range map[string]func(d *drawer, n int){
		"SequenceConstruct": func(d *drawer, n int) { add(d, "SequenceAt", "y", []string{"s", at(d, n, 0)}) },
		"SequenceAt":        func(d *drawer, n int) { add(d, "SequenceAt", "y", []string{"s", at(d, n, 0)}) },
		"SequenceLength":    func(d *drawer, n int) { add(d, "SequenceLength", "y", []string{"s"}) },
		"SequenceErase": func(d *drawer, n int) {
			in := []string{"s"}
			if d.chance(0.7) {
				in = append(in, at(d, n, 0))
			}
			add(d, "SequenceErase", "t", in)
			if d.chance(0.3) {
				result(d, "t")
			}
			add(d, "SequenceAt", "y", []string{"t", at(d, n-1, 0)})
		},
		"SequenceInsert": func(d *drawer, n int) {
			in := []string{"s", d.m.values[0].name}
			if d.chance(0.7) {
				in = append(in, at(d, n, 1))
			}
			add(d, "SequenceInsert", "t", in)
			if d.chance(0.3) {
				result(d, "t")
			}
			add(d, "SequenceAt", "y", []string{"t", at(d, n+1, 0)})
		},
		"ConcatFromSequence": func(d *drawer, n int) {
			rank := len(d.m.values[0].dims)
			stacked := d.IntN(2)
			attrs := []attr{{"axis", int64(d.between(-rank-stacked, rank-1+stacked))}}
			if stacked == 1 {
				attrs = append(attrs, attr{"new_axis", int64(1)})
			}
			add(d, "ConcatFromSequence", "y", []string{"s"}, attrs...)
		},
	} {
		generators[name] = func(d *drawer) {
			n := d.between(2, 4)
			_, _, parts := list(d, n)
			add(d, "SequenceConstruct", "s", parts)
			open(d, n)
			last(d, n)
			result(d, "y")
		}
	}
	generators["SplitToSequence"] = func(d *drawer) {
		dims := full(d.dims(1, 3))
		axis, written := d.axis(len(dims))
		x := d.value(dtype.F32, dims, d.data(dtype.F32, elements(dims)), false)
		in, attrs := []string{x.name}, []attr{{"axis", written}}
		if d.chance(0.5) {
			in = append(in, d.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(1, dims[axis]))), d.chance(0.6)).name)
		} else {
			attrs = append(attrs, attr{"keepdims", int64(d.IntN(2))})
		}
		add(d, "SplitToSequence", "s", in, attrs...)
		if d.chance(0.3) {
			result(d, "s")
		}
		add(d, "SequenceAt", "y", []string{"s", at(d, 1, 0)})
		result(d, "y")
	}
	generators["SequenceEmpty"] = func(d *drawer) {
		x := d.value(dtype.F32, []int{2}, d.data(dtype.F32, 2), false)
		var attrs []attr
		if d.chance(0.5) {
			attrs = append(attrs, attr{"dtype", int64(pick(d, dtype.F32, dtype.F32, dtype.I64).ONNX())})
			if attrs[0].value != int64(dtype.F32.ONNX()) { // it stays empty
				add(d, "SequenceEmpty", "s", nil, attrs...)
				add(d, "SequenceLength", "n", []string{"s"})
				result(d, "n")
				return
			}
		}
		add(d, "SequenceEmpty", "s", nil, attrs...)
		add(d, "SequenceInsert", "t", []string{"s", x.name})
		add(d, "SequenceAt", "y", []string{"t", at(d, 1, 0)})
		add(d, "SequenceLength", "n", []string{"s"})
		result(d, "y")
		result(d, "n")
	}
	for _, name := range []string{"Optional", "OptionalHasElement", "OptionalGetElement"} {
		generators[name] = func(d *drawer) {
			dims := d.dims(0, 3)
			x := d.value(dtype.F32, dims, d.data(dtype.F32, elements(dims)), d.chance(0.3))
			add(d, "Optional", "o", []string{x.name})
			if name == "OptionalHasElement" {
				add(d, name, "y", []string{"o"})
			} else {
				add(d, "OptionalGetElement", "y", []string{"o"})
			}
			result(d, "y")
		}
	}
	generators["SequenceMap"] = func(d *drawer) {
		dt, dims, parts := list(d, d.between(1, 3))
		add(d, "SequenceConstruct", "s", parts)
		add(d, "SequenceMap", "t", []string{"s"}, attr{"body", body([]typed{{"a", dt, dims}}, []string{"b"}, simple("Neg", "b", "a"))})
		add(d, "SequenceAt", "y", []string{"t", at(d, len(parts), 0)})
		result(d, "y")
	}
}
