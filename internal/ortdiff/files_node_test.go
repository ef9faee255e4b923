package ortdiff_test

import "github.com/tenure-go/tenure/internal/onnx/wire"

// ofNode returns a model of a node that computes y of x and has an opset.
func ofNode(opset, node string) string {
	return "opset " + opset + "\ninput x f32[1,3]\n" + node + "\noutput y f32\n"
}

// ofImage is ofNode with an x of one channel of 4 by 4 elements.
func ofImage(opset, node string) string {
	return "opset " + opset + "\ninput x f32[1,1,4,4]\n" + node + "\noutput y f32\n"
}

// image is the input of ofImage.
func image() []*value {
	return []*value{single("x", []int{1, 1, 4, 4}, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}
}

// batchNorm is a model with all outputs of a BatchNormalization of samples.
func batchNorm(opset, attrs, outputs string) string {
	return "opset " + opset + "\ninput x f32[2,3]\ninit s f32[3] 1 2 3\ninit b f32[3] 0.5 0.25 0.125\ninit m f32[3] 1 2 4\ninit v f32[3] 4 9 16\n" +
		"y, m1, v1, m2, v2 = BatchNormalization(x, s, b, m, v) {" + attrs + "}\noutput y f32\n" + outputs
}

func samples() []*value { return []*value{single("x", []int{2, 3}, 1, -2, 3, 3, 4, 7)} }

const (
	weightW = "init w f32[1,1,3,3] 1 2 3 4 5 6 7 8 9\n"
	flagWhy = "a flag is 0 or 1; ONNX Runtime takes other numbers as set for some operators and as not set for others"
)

// nodeFiles have odd nodes.
var nodeFiles = []oddFile{
	{name: "absent operands at the end", text: ofNode("18", `y = Clip(x, _, _)`)},
	{name: "an absent operand in the middle", text: ofNode("18", "init h f32[] 1\ny = Clip(x, _, h)")},
	{name: "an absent bias", text: ofImage("18", weightW+"y = Conv(x, w, _)"), inputs: image()},
	{name: "an empty region and scales", text: ofImage("18", "init r f32[0]\ninit s i64[4] 1 1 8 8\ny = Resize(x, r, r, s)"), inputs: image()},
	{name: "an absent operand that is needed", text: ofNode("18", "y = Add(x, _)"), outcome: refusedBoth, words: "operand 1 is absent, want a value"},
	{name: "functions of a cell in small letters", text: "opset 18\ninput x f32[2,1,1]\ninit w f32[1,4,1] 1 2 3 4\ninit r f32[1,4,1] 1 2 3 4\n" +
		"y = LSTM(x, w, r) {hidden_size = 1, activations = [\"sigmoid\", \"TANH\", \"tanh\"]}\noutput y f32\n", inputs: []*value{single("x", []int{2, 1, 1}, 0.5, -0.5)}},
	{name: "a function that no cell has", text: "opset 18\ninput x f32[2,1,1]\ninit w f32[1,4,1] 1 2 3 4\ninit r f32[1,4,1] 1 2 3 4\n" +
		"y = LSTM(x, w, r) {hidden_size = 1, activations = [\"Sigmoid\", \"Gelu\", \"Tanh\"]}\noutput y f32\n", inputs: []*value{single("x", []int{2, 1, 1}, 0.5, -0.5)}, outcome: refusedBoth,
		words: `activations: got "Gelu", want one of affine, elu,`},
	{name: "too many operands", text: ofNode("18", "y = Relu(x, x)"), outcome: refusedBoth, words: "got 2 operands, want 1"},
	{name: "an absent operand too many", text: ofNode("18", "y = Relu(x, _)"), outcome: onlyTenure},
	{name: "absent outputs", text: ofImage("18", "y, _ = MaxPool(x) {kernel_shape = [2,2]}"), inputs: image()},
	{name: "an absent first output", text: "opset 18\ninput x f32[1,3]\ninit k i64[1] 2\n_, y = TopK(x, k)\noutput y i64\n", outcome: onlyTenure},
	{name: "a node without outputs", text: reluX, edit: func(m *wire.Model) {
		m.Graph.Nodes = append(m.Graph.Nodes, wire.Node{OpType: "Relu", Inputs: []string{"x"}})
	}, outcome: refusedBoth, words: "got no outputs, want one or more"},
	{name: "an attribute that the operator has not", text: ofNode("18", "y = Relu(x) {foo = 1}"), outcome: refusedBoth, words: `attribute "foo"`},
	{name: "an attribute of a tool", text: ofNode("18", "y = LeakyRelu(x) {alpha = 0.5, __quantised = 1}")},
	{name: "an attribute twice", text: ofNode("18", "y = LeakyRelu(x) {alpha = 0.5, alpha = 0.25}"), outcome: refusedBoth, words: `attribute "alpha" is given twice`},
	{name: "a float attribute as an integer", text: ofNode("18", "y = LeakyRelu(x) {alpha = 1}"), outcome: refusedBoth, words: `attribute "alpha": got int, want float`},
	{name: "an integer attribute as a float", text: ofNode("18", "y = Softmax(x) {axis = 1.0}"), outcome: refusedBoth, words: `attribute "axis": got float, want int`},
	{name: "an integer attribute as a string", text: ofNode("18", `y = Softmax(x) {axis = "1"}`), outcome: refusedBoth, words: `attribute "axis": got string, want int`},
	{name: "an integer attribute as a list", text: ofNode("18", "y = Softmax(x) {axis = [1]}"), outcome: refusedBoth, words: `attribute "axis": got ints, want int`},
	{name: "a list attribute as an integer", text: ofNode("18", "y = Transpose(x) {perm = 1}"), outcome: refusedBoth, words: `attribute "perm": got int, want ints`},
	{name: "an element type as a string", text: ofNode("18", `y = Cast(x) {to = "FLOAT"}`), outcome: refusedBoth, words: `attribute "to": got string`},
	{name: "no axis of Concat", text: ofNode("18", "y = Concat(x, x)"), outcome: refusedBoth, words: `attribute "axis" is missing`},
	{name: "an axis beyond the last", text: ofNode("18", "y = Concat(x, x) {axis = 2}"), outcome: refusedBoth, words: "axis: got 2, want -2 to 1"},
	{name: "a mode in capitals", text: ofImage("18", "init s f32[4] 1 1 2 2\ny = Resize(x, _, s) {mode = \"Nearest\"}"), inputs: image(), outcome: refusedBoth, words: `attribute "mode": got "Nearest", want one of`},
	{name: "auto_pad in small letters", text: ofImage("18", `y = MaxPool(x) {kernel_shape = [2,2], auto_pad = "same_upper"}`), inputs: image(), outcome: refusedBoth, words: `attribute "auto_pad": got "same_upper", want one of`},
	{name: "auto_pad that is empty", text: ofImage("18", `y = MaxPool(x) {kernel_shape = [2,2], auto_pad = ""}`), inputs: image()},
	{name: "pads beside auto_pad", text: ofImage("18", weightW+`y = Conv(x, w) {auto_pad = "SAME_UPPER", pads = [1,1,1,1]}`), inputs: image(), outcome: refusedBoth, words: "pads: got [1 1 1 1] with auto_pad"},
	{name: "pads of 0 beside auto_pad", text: ofImage("18", weightW+`y = Conv(x, w) {auto_pad = "SAME_UPPER", pads = [0,0,0,0]}`), inputs: image(), outcome: onlyTenure},
	{name: "too few pads", text: ofImage("18", "y = MaxPool(x) {kernel_shape = [2,2], pads = [0,0]}"), inputs: image(), outcome: refusedBoth, words: "pads: got [0 0], want 4 numbers"},
	{name: "negative pads of Conv", text: ofImage("18", weightW+"y = Conv(x, w) {pads = [-1,0,0,0]}"), inputs: image(), outcome: refusedBoth, words: "pads: got [-1 0 0 0], want numbers from 0"},
	{name: "strides of 0", text: ofImage("18", weightW+"y = Conv(x, w) {strides = [0,0]}"), inputs: image(), outcome: refusedBoth, words: "strides: got [0 0], want numbers from 1"},
	{name: "no groups", text: ofImage("18", weightW+"y = Conv(x, w) {group = 0}"), inputs: image(), outcome: refusedBoth, words: "group: got 0, want 1 or more"},
	{name: "another kernel_shape than that of the weights", text: ofImage("18", weightW+"y = Conv(x, w) {kernel_shape = [2,2]}"), inputs: image(), outcome: refusedBoth, words: "kernel_shape: got [2 2], want the sizes of the weights"},
	{name: "a negative axis before opset 11", text: ofNode("9", "y = Softmax(x) {axis = -1}")},
	{name: "negative axes of a reduction before opset 11", text: ofNode("9", "y = ReduceMean(x) {axes = [-1]}")},
	{name: "a negative index before opset 11", text: ofNode("9", "init i i64[1] -1\ny = Gather(x, i) {axis = -1}")},
	{name: "storage_order of MaxPool without indices", text: ofImage("18", "y = MaxPool(x) {kernel_shape = [2,2], storage_order = 1}"), inputs: image()},
	{name: "keepdims of 2", text: ofNode("11", "y = ReduceMean(x) {axes = [1], keepdims = 2}"), outcome: onlyONNXRuntime, words: `attribute "keepdims": got 2, want 0 or 1`, why: flagWhy},
	{name: "transB of 2", text: ofNode("18", "init w f32[2,3] 1 2 3 4 5 6\ny = Gemm(x, w) {transB = 2}"), outcome: onlyONNXRuntime, words: `attribute "transB": got 2, want 0 or 1`, why: flagWhy},
	{name: "ceil_mode of 2", text: ofImage("18", "y = MaxPool(x) {kernel_shape = [3,3], strides = [2,2], ceil_mode = 2}"), inputs: image(), outcome: onlyONNXRuntime, words: `attribute "ceil_mode": got 2, want 0 or 1`, why: flagWhy},
	{name: "a scalar as the shape of Expand", text: ofNode("18", "init s i64[] 3\ny = Expand(x, s)"), words: "operand 1 is one number, taken as a list of one"},
	{name: "a scalar as the size of Resize", text: "opset 18\ninput x f32[3]\ninit s i64[] 6\ny = Resize(x, _, _, s)\noutput y f32\n", inputs: []*value{single("x", []int{3}, 1, 2, 3)}, words: "operand 3 is one number"},
	{name: "a scalar as the shape of Reshape", text: "opset 18\ninput x f32[3]\ninit s i64[] 3\ny = Reshape(x, s)\noutput y f32\n", inputs: []*value{single("x", []int{3}, 1, 2, 3)}, outcome: refusedBoth, words: "operand 1: got i64[], want 1 dimensions"},
	{name: "scalars as the bounds of Slice", text: ofNode("18", "init a i64[] 0\ninit b i64[] 1\ny = Slice(x, a, b)"), outcome: refusedBoth, words: "operand 1: got i64[], want 1 dimensions"},
	{name: "a scalar as the axis of Unsqueeze", text: ofNode("18", "init a i64[] 0\ny = Unsqueeze(x, a)")},
	{name: "bounds of Clip as lists", text: ofNode("18", "init a f32[1] -1\ninit b f32[1] 1\ny = Clip(x, a, b)")},
	{name: "bounds of Range as lists", text: "opset 18\ninput x f32[1,3]\ninit a f32[1] 0\ninit b f32[1] 3\ninit c f32[1] 1\nr = Range(a, b, c)\ny = Add(x, r)\noutput y f32\n", outcome: onlyTenure},
	{name: "the axis of CumSum as a list", text: ofNode("18", "init a i64[1] 1\ny = CumSum(x, a)")},
	{name: "outputs of training that nothing reads", text: batchNorm("9", "", ""), inputs: samples(), words: "takes the statistics of its batch"},
	{name: "outputs of training, with a momentum", text: batchNorm("7", "momentum = 0.5", "output m1 f32\noutput v1 f32\n"), inputs: samples(), words: "takes the statistics of its batch"},
	{name: "statistics of a batch", text: batchNorm("9", "", "output m2 f32\n"), inputs: samples(), outcome: onlyONNXRuntime, words: "output 3",
		why: "saved_mean and saved_var of BatchNormalization before opset 14 are not supported"},
	{name: "outputs of training, with spatial 0", text: batchNorm("7", "spatial = 0", ""), inputs: samples(), outcome: refusedBoth, words: "training with spatial 0"},
	{name: "Dropout of opset 6 without is_test", text: ofNode("6", "y = Dropout(x)"), outcome: onlyTenure, words: "Dropout of opset 6 without is_test is taken as in inference"},
	{name: "Dropout of opset 6 with is_test 0", text: ofNode("6", "y = Dropout(x) {is_test = 0}"), outcome: refusedBoth, words: "is_test 0, which is training; set it to 1 for inference"},
	{name: "the mask of Dropout before opset 10", text: "opset 7\ninput x f32[1,3]\ny, m = Dropout(x)\noutput y f32\noutput m f32\n", outcome: unlike,
		why: "before opset 10 Dropout's mask is open in inference: it is 1 here, as in later opsets, and 0 in ONNX Runtime"},
	{name: "sizes of one name that broadcast", text: "opset 18\ninput x f32[n,3]\ninput z f32[n,3]\ny = Add(x, z)\noutput y f32\n", inputs: []*value{xInput(), single("z", []int{2, 3}, 1, 2, 3, 4, 5, 6)}, outcome: onlyONNXRuntime,
		words: "want f32[n,3] with n = 1", why: "sizes of one name are equal where the operators of the model allow it; ONNX Runtime broadcasts one of them"},
	{name: "sizes of one name that are joined", text: "opset 18\ninput x f32[n,3]\ninput z f32[n,3]\ny = Concat(x, z) {axis = 0}\noutput y f32\n", inputs: []*value{xInput(), single("z", []int{2, 3}, 1, 2, 3, 4, 5, 6)}},
	{name: "an operator of com.microsoft without its import", text: ofNode("18", "y = \"com.microsoft\"::Gelu(x)"), words: `operators of domain "com.microsoft" and does not import them`},
	{name: "the domain ai.onnx", text: ofNode("18", "y = \"ai.onnx\"::Relu(x)")},
	{name: "an operator that nobody has", text: ofNode("18", "y = Frob(x)"), outcome: refusedBoth, words: "no such operator"},
}
