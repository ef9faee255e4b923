package ortdiff_test

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
)

const (
	reluX  = "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y f32\n"
	reluXX = "opset 18\ninput x f32[1,3]\na = Relu(x)\ny = Neg(a)\noutput y f32\n"
)

// boolean returns an input of one bool.
func boolean(name string, dims ...int) *value {
	return &value{name: name, dt: dtype.Bool, dims: append([]int{}, dims...), data: []byte{1}}
}

// branches are the graphs of ifs: yes and no.
func branches(yes string) string {
	return "graph yes\n" + yes + "end\ngraph no\ne = Neg(x)\noutput e f32\nend\n"
}

const ifC = "input x f32[1,3]\ninput c bool[]\ny = If(c) {then_branch = yes, else_branch = no}\noutput y f32\n"

// callOf puts a function acme::F in front of a model that calls it.
func callOf(body, call string) string {
	return "opset 18\nopset acme 1\nfunc acme::F(a, b) -> (y) {alpha}\nopset 18\n" + body + "end\ninput x f32[1,3]\n" + call + "output y f32\n"
}

// graphFiles have odd graphs, declarations and functions.
var graphFiles = append(versions(), []oddFile{
	{name: "two imports of one domain", text: "opset 11\n" + reluX, words: `several versions of domain "": the last one, 18, counts`},
	{name: "two imports of one domain, the older last", text: "opset 18\nopset 11\ninput x f32[2,1,3]\ny = Softmax(x)\noutput y f32\n", inputs: []*value{single("x", []int{2, 1, 3}, 1, 2, 3, 4, 5, 6)},
		words: "the last one, 11, counts"},
	{name: "two names of one domain", text: "opset 18\nopset \"ai.onnx\" 11\ninput x f32[2,3,1]\ny = Softmax(x)\noutput y f32\n", inputs: []*value{single("x", []int{2, 3, 1}, 1, 2, 3, 4, 5, 6)},
		words: "the last one, 11, counts"},
	{name: "no imports", text: "input x f32[1,3]\ny = Relu(x)\noutput y f32\n", outcome: refusedBoth, words: "the model imports no opset of ONNX's own domain"},
	{name: "an import that no node uses", text: "opset foo 3\n" + reluX},
	{name: "an input twice", text: "input x f32[1,3]\n" + reluX, outcome: refusedBoth, words: `input "x": got a second one of that name`},
	{name: "an output twice", text: reluX + "output y f32\n", words: `lists output "y" again`},
	{name: "an output that is an input", text: reluX + "output x f32\n"},
	{name: "an output that is an initializer", text: reluX + "init b f32[2] 1 2\noutput b f32\n"},
	{name: "an output of an empty graph", text: "opset 18\ninput x f32[1,3]\noutput x f32\n"},
	{name: "an output that nothing computes", text: reluX + "output q f32\n", outcome: refusedBoth, words: `output 1 is "q": no input, initializer or node gives that`},
	{name: "no outputs", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\n", outcome: refusedBoth, words: "the graph has no outputs"},
	{name: "an output without a type", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y _\n"},
	{name: "an output of another element type", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y i64\n", outcome: refusedBoth, words: "correct the declaration, or add a Cast"},
	{name: "an output of another rank", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y f32[3]\n", words: "the file declares f32[3], the nodes give f32[1,3]"},
	{name: "an output of other sizes", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y f32[7,3]\n", words: "the file declares f32[7,3]"},
	{name: "an output of a negative size", text: "opset 18\ninput x f32[1,3]\ny = Relu(x)\noutput y f32[-7,3]\n"},
	{name: "an input without a type", text: "opset 18\ninput x _\ny = Relu(x)\noutput y f32\n", outcome: refusedBoth, words: `input "x": got no type`},
	{name: "an input of a negative size", text: "opset 18\ninput x f32[-1,3]\ny = Relu(x)\noutput y f32\n"},
	{name: "an input that nothing reads", text: reluX + "input u f32[2]\n", inputs: []*value{xInput(), single("u", []int{2}, 1, 2)}},
	{name: "another element type of a value", text: reluXX + "value a i64[1,3]\n", outcome: onlyTenure, words: "the file declares i64[1,3], the nodes give f32[1,3]"},
	{name: "another element type of an input", text: reluXX + "value x i64[1,3]\n", words: "the file declares i64[1,3]"},
	{name: "another element type of an output", text: reluXX + "value y i64[1,3]\n", words: "the file declares i64[1,3]"},
	{name: "another element type of an initializer", text: addB + oneB + "value b i64[3]\n", words: "the file declares i64[3]"},
	{name: "another size of a value", text: reluXX + "value a f32[1,7]\n", words: "the file declares f32[1,7]"},
	{name: "another rank of a value", text: reluXX + "value a f32[3]\n", words: "the file declares f32[3]"},
	{name: "another size of an initializer", text: addB + oneB + "value b f32[9]\n", words: "the file declares f32[9]"},
	{name: "a type of no value", text: reluXX + "value q f32[9]\n"},
	{name: "a value twice", text: reluXX + "a = Neg(x)\n", outcome: refusedBoth, words: `output "a": got a second value of that name`},
	{name: "nodes in another order", text: "opset 18\ninput x f32[1,3]\ny = Neg(a)\na = Relu(x)\noutput y f32\n"},
	{name: "two nodes of one name", text: "opset 18\ninput x f32[1,3]\na = Relu(x) as \"n\"\ny = Neg(a) as \"n\"\noutput y f32\n", outcome: onlyTenure},

	{name: "an input of one element, declared as a scalar", text: "opset 18\ninput x f32[1,3]\ninput b f32[]\ny = Mul(x, b)\noutput y f32\n", inputs: []*value{xInput(), single("b", []int{1}, 2)}, outcome: onlyONNXRuntime,
		words: `input "b": got f32[1], want f32[]`, why: "no dimensions are those of a scalar, by the text; ONNX Runtime takes an input of any rank"},
	{name: "a scalar, declared as a list", text: "opset 18\ninput x f32[1,3]\ninput b f32[1]\ny = Mul(x, b)\noutput y f32\n", inputs: []*value{xInput(), single("b", []int{}, 2)}, outcome: refusedBoth, words: `input "b": got f32[], want f32[1]`},
	{name: "an input that has an initializer", text: addB + "input b f32[3]\n" + oneB, words: `weights, which no run replaces: "b"`},
	{name: "a value for an input that has an initializer", text: addB + "input b f32[3]\n" + oneB, inputs: []*value{xInput(), single("b", []int{3}, 7, 8, 9)}, outcome: onlyONNXRuntime,
		words: `got a value for "b", want inputs of the model`, why: "a value that the file has is a weight, as it was in all files before IR version 4; ONNX Runtime replaces it in later ones"},
	{name: "an initializer of another type than its input", text: addB + "input b i64[3]\n" + oneB, outcome: onlyTenure, words: "weights"},

	{name: "one name in both branches", text: "opset 18\n" + branches("e = Relu(x)\noutput e f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}},
	{name: "a branch that returns a value from around it", text: "opset 18\n" + branches("output x f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}, outcome: onlyTenure},
	{name: "a branch with its own initializer of a name", text: "opset 18\ninit b f32[1] 5\n" + branches("init b f32[1] 7\nt = Add(x, b)\noutput t f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}},
	{name: "a branch whose initializer is also its input", text: "ir 3\nopset 9\n" + branches("input b f32[1]\ninit b f32[1] 7\nt = Add(x, b)\noutput t f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}},
	{name: "a loop whose initializer is also an input of its body", text: "opset 13\ngraph body\ninput i i64[]\ninput on bool[]\ninput a f32\ninput b f32[1]\ninit b f32[1] 7\nc = Add(a, b)\non2 = Identity(on)\noutput on2 bool[]\noutput c f32\nend\n" +
		"input x f32[1,3]\ninit m i64[] 2\ninit yes bool[] 1\ny = Loop(m, yes, x) {body = body}\noutput y f32\n"},
	{name: "a branch with its own value of a name", text: "opset 18\na = Relu(x)\n" + branches("a = Neg(x)\noutput a f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}, outcome: onlyTenure},
	{name: "a branch that reads a later value", text: "opset 18\n" + branches("t = Relu(q)\noutput t f32\n") + ifC + "q = Neg(x)\n", inputs: []*value{xInput(), boolean("c")}},
	{name: "branches of other ranks", text: "opset 18\n" + branches("t = Squeeze(x)\noutput t f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}},
	{name: "branches of other element types", text: "opset 18\n" + branches("t = Cast(x) {to = 7}\noutput t i64\n") + ifC, inputs: []*value{xInput(), boolean("c")}, outcome: refusedBoth, words: "want one element type"},
	{name: "a branch with an input", text: "opset 18\n" + branches("input z f32\nt = Relu(x)\noutput t f32\n") + ifC, inputs: []*value{xInput(), boolean("c")}, outcome: refusedBoth, words: "got 1 inputs, want none"},
	{name: "a condition of a matrix", text: "opset 18\n" + branches("t = Relu(x)\noutput t f32\n") + "input x f32[1,3]\ninput c bool[1,1]\ny = If(c) {then_branch = yes, else_branch = no}\noutput y f32\n", inputs: []*value{xInput(), boolean("c", 1, 1)}},
	{name: "a condition of an unknown rank", text: "opset 18\n" + branches("t = Relu(x)\noutput t f32\n") + "input x f32[1,3]\ninput c bool\ny = If(c) {then_branch = yes, else_branch = no}\noutput y f32\n", inputs: []*value{xInput(), boolean("c", 1, 1)}},

	{name: "a function", text: callOf("y = LeakyRelu(a) {alpha = @alpha}\n", "y = acme::F(x) {alpha = 0.5}\n")},
	{name: "a function without the attribute", text: callOf("y = LeakyRelu(a) {alpha = @alpha}\n", "y = acme::F(x)\n")},
	{name: "a function with an attribute that it does not list", text: callOf("y = LeakyRelu(a) {alpha = @beta}\n", "y = acme::F(x) {beta = 0.5}\n"), words: `does not list the attribute "beta"`},
	{name: "a function with an attribute that nothing reads", text: callOf("y = Relu(a)\n", "y = acme::F(x) {beta = 0.5}\n"), words: `does not list the attribute "beta"`},
	{name: "a function with too many operands", text: callOf("y = Relu(a)\n", "y = acme::F(x, x, x)\n"), outcome: refusedBoth, words: "got 3 operands and 1 outputs, want at most 2 and 1"},
	{name: "a function of nodes in another order", text: callOf("y = Relu(t)\nt = Neg(a)\n", "y = acme::F(x)\n"), outcome: onlyTenure},
	{name: "a function of the name of an operator", text: "opset 18\nfunc \"\"::Relu(a) -> (y)\nopset 18\ny = Neg(a)\nend\ninput x f32[1,3]\ny = Relu(x)\noutput y f32\n", outcome: unlike,
		why: "a function of the model goes before the operator of its name, which the specification leaves to runtimes; in ONNX Runtime the operator does"},
	{name: "a function that calls itself", text: callOf("y = acme::F(a)\n", "y = acme::F(x)\n"), outcome: refusedBoth, words: "function acme::F calls itself"},
	{name: "two functions of one name", text: callOf("y = Relu(a)\nend\nfunc acme::F(a) -> (y)\ny = Neg(a)\n", "y = acme::F(x)\n"), outcome: refusedBoth, words: "function acme::F: got a second one of that name"},
	{name: "an overload of a function", text: callOf("y = Relu(a)\nend\nfunc acme::F(a) -> (y)\ny = Neg(a)\n", "y = acme::F(x)\n"), edit: func(m *wire.Model) {
		m.Functions[0].Overload, m.Functions[1].Overload, m.Graph.Nodes[0].Overload = "p", "q", "q"
	}},
	{name: "an overload that there is not", text: callOf("y = Relu(a)\n", "y = acme::F(x)\n"), edit: func(m *wire.Model) { m.Graph.Nodes[0].Overload = "q" }, outcome: refusedBoth, words: "no such operator"},
}...)

// versions returns a file for each version of the format and of the operators.
func versions() (list []oddFile) {
	for _, v := range []int{3, 4, 7, 8, 10, 12, 13, 14} {
		list = append(list, oddFile{name: fmt.Sprint("IR version ", v), text: fmt.Sprintf("ir %d\n%s", v, reluX)})
	}
	list = append(list, oddFile{name: "an IR version of the future", text: "ir 99\n" + reluX, outcome: onlyTenure})
	for _, v := range []int{6, 7, 9, 13, 18, 21, 25, 26} {
		list = append(list, oddFile{name: fmt.Sprint("opset ", v), text: fmt.Sprintf("opset %d\ninput x f32[1,3]\ny = Relu(x)\noutput y f32\n", v)})
	}
	for _, v := range []int{1, 5, 99} {
		list = append(list, oddFile{name: fmt.Sprint("opset ", v), text: fmt.Sprintf("opset %d\ninput x f32[1,3]\ny = Relu(x)\noutput y f32\n", v), outcome: refusedBoth,
			words: fmt.Sprintf("got opset %d, want 6 to 28, to which onnx.version_converter converts many models", v)})
	}
	return list
}

// nameFiles have dimensions of all kinds of names, in an input and an output.
func nameFiles() (list []oddFile) {
	for _, name := range []string{"n - 1", "2*n", "n/2", "floor(n/2)", "past_sequence + sequence", "Min(a, b)", "Max(1, s0)", "((s0 - 1)//2) + 1", "-n", "n**2", "n%2", "Mod(s0, 8)",
		"batch*sequence", "x.shape[0]", "n!", "(n", "n)", "n+", "+", "a b c", "日本", "∞", "%d", "n\nm", "1", "007", "-1", "?", "", "None", "null", "unk__12", "N"} {
		text := fmt.Sprintf("opset 18\ninput x f32[n,3]\ninput z f32[%q,3]\ny = Concat(x, z) {axis = 0}\nv = Relu(z)\noutput y f32\noutput v f32[%q,3]\n", name, name)
		list = append(list, oddFile{name: fmt.Sprintf("dimension %q", name), text: text,
			inputs: []*value{single("x", []int{1, 3}, 1, 2, 3), single("z", []int{2, 3}, 4, 5, 6, 7, 8, 9)}})
	}
	return list
}
