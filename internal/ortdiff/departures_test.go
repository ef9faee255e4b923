package ortdiff_test

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// departure is an accepted difference: ONNX Runtime departs from the
// specification, or the specification leaves it open.
type departure struct {
	ops  []string
	why  string
	when func(m *model, fault string) bool
}

// node is the one that the model is about.
func (m *model) node() *node { return m.graph.nodes[0] }

func (n *node) get(name string) any {
	for _, a := range n.attrs {
		if a.name == name {
			return a.value
		}
	}
	return nil
}

// delimiter is that of a StringSplit.
func (m *model) delimiter() string {
	s, _ := m.node().get("delimiter").(string)
	return s
}

// operand is operand i of the node, nil where it is left out.
func (m *model) operand(i int) *value {
	if i >= len(m.node().in) {
		return nil
	}
	for _, v := range m.values {
		if v.name == m.node().in[i] {
			return v
		}
	}
	return nil
}

// anywhere reports whether some element of a float operand is so.
func (m *model) anywhere(is func(float64) bool) bool {
	for _, v := range m.values {
		if !v.dt.IsFloat() {
			continue
		}
		for _, x := range decode(v.dt, v.data) {
			if is(x.f) {
				return true
			}
		}
	}
	return false
}

func (m *model) hasNaN() bool { return m.anywhere(math.IsNaN) }

func (m *model) hasInf() bool { return m.anywhere(func(f float64) bool { return math.IsInf(f, 0) }) }

func (m *model) isEmpty() bool {
	for _, v := range m.values {
		if elements(v.dims) == 0 && len(v.dims) > 1 {
			return true
		}
	}
	return false
}

func (m *model) of(types ...dtype.DType) bool {
	for _, dt := range types {
		for i := range m.node().in {
			if v := m.operand(i); v != nil && v.dt == dt {
				return true
			}
		}
	}
	return false
}

func refusal(fault string) bool { return strings.HasPrefix(fault, "refused") }

var reductions = []string{"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
	"ReduceSum", "ReduceSumSquare"}

var pools = []string{"MaxPool", "AveragePool", "LpPool", "com.microsoft::NhwcMaxPool", "com.microsoft::QLinearAveragePool"}

// otherSizes3 are results of three axes that differ in their sizes.
var otherSizes3 = regexp.MustCompile(`: got f[0-9]+ ?\[\d+ \d+ \d+\], want f[0-9]+ ?\[`)

// collectsNothing are differences of the sizes of results without elements.
var collectsNothing = regexp.MustCompile(`: got [a-z0-9]+ ?\[0[0-9 ]*\], want [a-z0-9]+ ?\[0[0-9 ]*\]`)

// isGrown reports whether a fault is a difference of less than a thousandth of
// a number above a million.
func isGrown(fault string) bool {
	_, numbers, _ := strings.Cut(fault, ": element ")
	var at int
	var got, want float64
	if _, err := fmt.Sscanf(numbers, "%d: got %g, want %g", &at, &got, &want); err != nil {
		return false
	}
	return math.Abs(want) > 1e6 && math.Abs(got-want) < 1e-3*math.Abs(want)
}

// withoutElements are operands in an error that have none.
var withoutElements = regexp.MustCompile(`got [a-z0-9]+\[([0-9]+,)*0(,[0-9]+)*\]|want 0 in dimension`)

var departures = []departure{
	{
		ops: []string{mlDomain + "::TreeEnsemble"},
		why: "post_transform 1 is SOFTMAX and 2 is LOGISTIC, as the specification numbers them; ONNX Runtime takes them the other way round",
		when: func(m *model, fault string) bool {
			return !refusal(fault) && (m.node().get("post_transform") == int64(1) || m.node().get("post_transform") == int64(2))
		},
	},
	{
		ops: []string{mlDomain + "::TreeEnsemble"},
		why: "a number is in a set if it equals a member; ONNX Runtime finds some numbers between integers in sets of integers",
		when: func(m *model, fault string) bool {
			kinds, ok := m.node().get("nodes_modes").(*value)
			return !refusal(fault) && ok && slices.Contains(kinds.data, 6)
		},
	},
	{
		ops: []string{mlDomain + "::TreeEnsembleRegressor"},
		why: "a target has its base value also where no leaf has a weight for it; in ONNX Runtime it is 0 then",
		when: func(m *model, fault string) bool {
			targets, _ := m.node().get("n_targets").(int64)
			modes, _ := m.node().get("nodes_modes").([]string)
			ids, _ := m.node().get("target_ids").([]int64)
			leaves := 0
			for _, mode := range modes {
				if mode == "LEAF" {
					leaves++
				}
			}
			based := m.node().get("base_values") != nil || m.node().get("base_values_as_tensor") != nil
			return !refusal(fault) && based && len(ids) < leaves*int(targets)
		},
	},
	{
		ops: []string{"StringSplit"},
		why: "white space is what Unicode says it is; ONNX Runtime splits at spaces only",
		when: func(m *model, fault string) bool {
			return m.delimiter() == "" && strings.Contains(quoted(m.operand(0).data), `\t`)
		},
	},
	{
		ops:  []string{contribDomain + "::Tokenizer"},
		why:  "without strings the result has the rank that it has with some; in ONNX Runtime it has two dimensions, or one",
		when: func(m *model, fault string) bool { return elements(m.operand(0).dims) == 0 },
	},
	{
		ops: []string{"StringSplit"},
		why: "an empty string has one part, which is empty, between delimiters, as in the reference implementation; in ONNX Runtime it has none",
		when: func(m *model, fault string) bool {
			return m.delimiter() != "" && slices.Contains(decodeStrings(m.operand(0).data), "")
		},
	},
	{
		ops: []string{"Gather"},
		why: "a slice of strings is gathered whole; ONNX Runtime copies its first string",
		when: func(m *model, fault string) bool {
			return m.operand(0).dt == dtype.String && strings.Contains(fault, ": got other strings")
		},
	},
	{
		ops: []string{"Slice", "Squeeze", "Unsqueeze"},
		why: "axes of strings must be known when the model is read",
		when: func(m *model, fault string) bool {
			return m.operand(0).dt == dtype.String && strings.Contains(fault, "not known at load")
		},
	},
	{[]string{"ArgMax", "ArgMin", "TopK", "ReduceMax", "ReduceMin"}, "where a NaN stands among numbers is left open; ONNX Runtime goes by where it lies",
		func(m *model, fault string) bool { return m.hasNaN() && !refusal(fault) }},
	{[]string{"ScatterElements", "ScatterND"}, "max and min of a NaN are NaN; ONNX Runtime goes by the order of the two",
		func(m *model, fault string) bool {
			return m.hasNaN() && (m.node().get("reduction") == "max" || m.node().get("reduction") == "min")
		}},
	{[]string{"BlackmanWindow", "HammingWindow", "HannWindow"}, "a symmetric window of one point is a quotient of zeros in the function of the specification",
		func(m *model, fault string) bool {
			return m.node().get("periodic") == int64(0) && one(m.operand(0).dt, m.operand(0).data).i == 1
		}},
	{[]string{"Clip"}, "without a bound infinities stay, as the function of the specification has it; ONNX Runtime clips to the largest number, now and then",
		func(m *model, fault string) bool { return m.hasInf() && !refusal(fault) }},
	{[]string{"Gelu", "HardSwish", "Shrink", "BlackmanWindow", "HammingWindow", "HannWindow", "GroupNormalization", "DFT", "STFT", "Attention",
		mlDomain + "::TreeEnsemble", mlDomain + "::TreeEnsembleRegressor"}, "ONNX Runtime computes double precision and integers with constants of single precision, or in it",
		func(m *model, fault string) bool {
			single := m.of(dtype.F32, dtype.F16, dtype.BF16)
			return !single && !refusal(fault) && (m.agreesInSingle(fault) || !m.of(dtype.F64))
		}},
	{[]string{"LogSoftmax", "Softmax"}, "a sum with an infinity in it is NaN after the maximum is subtracted; ONNX Runtime returns limits",
		func(m *model, fault string) bool { return m.hasInf() && !refusal(fault) }},
	{[]string{"MeanVarianceNormalization"}, "of one element, or of equal ones, the result is 0, as by the function of the specification; in ONNX Runtime a variance may round to less than zero, which has no root",
		func(m *model, fault string) bool { return strings.Contains(fault, "want NaN") }},
	{[]string{"NonMaxSuppression"}, "limits and thresholds have one element, as in the specification; ONNX Runtime reads the first of several",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "want one element")
		}},
	{[]string{"NonZero"}, "by the specification a scalar has no row, unlike in numpy; ONNX Runtime returns one",
		func(m *model, fault string) bool { return len(m.operand(0).dims) == 0 }},
	{reductions, "ONNX Runtime gives results of other sizes, or none, where there is nothing to reduce",
		func(m *model, fault string) bool { return m.isEmpty() }},
	{[]string{"ReduceLogSumExp", "ReduceLogSum", "ReduceL2", "ReduceMean"}, "ONNX Runtime rounds each part of the function where the elements are integers",
		func(m *model, fault string) bool {
			return m.of(dtype.I32, dtype.I64) && !refusal(fault) && !m.of(dtype.F32, dtype.F16, dtype.BF16, dtype.F64)
		}},
	{[]string{"Slice"}, "an end of the largest number is the last element, also when going backward; ONNX Runtime takes it as before the first",
		func(m *model, fault string) bool {
			return !refusal(fault) && m.operand(4) != nil && strings.Contains(m.operand(2).String(), "2147483647") || m.operand(2) != nil && strings.Contains(m.operand(2).String(), "9223372036854775807")
		}},
	{[]string{"GroupNormalization", "InstanceNormalization"}, "a variance is that of the differences from the mean; ONNX Runtime takes the mean of squares less the square of the mean, and loses it where elements hardly differ",
		func(m *model, fault string) bool { return !refusal(fault) && m.hardlyDiffers() }},
	{[]string{"AffineGrid"}, "corners that are aligned on an axis of one point are a quotient by zero in the function of the specification",
		func(m *model, fault string) bool {
			return m.node().get("align_corners") == int64(1) && slices.ContainsFunc(decode(dtype.I64, m.operand(1).data)[2:], func(x number) bool { return x.i == 1 })
		}},
	{pools, "with auto_pad SAME the result has one element for each stride, by the formula of the text; ONNX Runtime forgets the dilations when it pads",
		func(m *model, fault string) bool {
			return m.same() && dilated(m.node())
		}},
	{pools, "without ceil_mode a window larger than the padded input is an error, as in PyTorch, since by the formula nothing would be left; ONNX Runtime rounds the quotient towards zero and returns a result",
		func(m *model, fault string) bool {
			return refusal(fault) && (strings.Contains(fault, "want at least the window") || strings.Contains(fault, "want an element to pool"))
		}},
	{[]string{"Pad"}, "a reflection needs an element for each pad also where another axis has none; ONNX Runtime does not look",
		func(m *model, fault string) bool {
			return refusal(fault) && m.isEmpty() && strings.Contains(fault, "want less than the size in mode")
		}},
	{[]string{"Col2Im"}, "ONNX Runtime reads blocks of other than two axes in another order where they are dilated",
		func(m *model, fault string) bool { return dilated(m.node()) && len(m.operand(1).data) != 16 }},
	{[]string{"ConvTranspose"}, "with auto_pad SAME the result has as many elements as strides, by the text and as TensorFlow, which exports it; ONNX Runtime returns fewer where the kernel is smaller than its stride",
		func(m *model, fault string) bool {
			return m.same() && m.leaps() && m.node().get("output_shape") == nil
		}},
	{[]string{"Dropout"}, "elements that are not dropped are true in the mask; before opset 12 ONNX Runtime returns false",
		func(m *model, fault string) bool {
			return m.opset < 12 && strings.HasPrefix(fault, "output ") && strings.Contains(fault, "y1: ")
		}},
	{[]string{"Loop", "Scan"}, "what a loop collects has the sizes of its elements also where it has no round; ONNX Runtime takes sizes that it does not know as 0, or leaves the axes out",
		func(m *model, fault string) bool { return collectsNothing.MatchString(fault) }},
	{[]string{"RNN", "GRU", "LSTM"}, "what follows from a NaN is one; ONNX Runtime's functions cut it to a bound",
		func(m *model, fault string) bool { return strings.Contains(fault, ": got NaN, want ") }},
	{[]string{"GroupNormalization"}, "scales and biases have an element for each channel; ONNX Runtime repeats a single one",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "got f32[1], want [")
		}},
	{[]string{"If", "Loop", "Scan"}, "a branch or body that does not run must fit the sizes of the inputs too; ONNX Runtime looks when it runs",
		func(*model, string) bool { return false }}, // mixer.isIdle finds it
	{[]string{contribDomain + "::SkipLayerNormalization", contribDomain + "::SkipSimplifiedLayerNormalization"}, "what is added broadcasts; ONNX Runtime repeats whatever sizes it has",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "broadcast: got") || otherSizes3.MatchString(fault)
		}},
	{[]string{"DequantizeLinear", contribDomain + "::DequantizeLinear"}, "zero points have the sizes of the scales; ONNX Runtime's optimiser lets one stand for all",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "want the shape of operand 1")
		}},
	{[]string{"ArgMax", "ArgMin"}, "there is an element along the axis also where another axis has none; ONNX Runtime does not look",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "want an element along axis")
		}},
	{[]string{"RotaryEmbedding", contribDomain + "::RotaryEmbedding"}, "num_heads are those of an operand of four axes; ONNX Runtime does not look",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "want the heads of operand 0")
		}},
	{[]string{"PRelu"}, "slopes broadcast to the sizes of the input; ONNX Runtime lets inputs broadcast to theirs",
		func(m *model, fault string) bool {
			return refusal(fault) && strings.Contains(fault, "want a shape that broadcasts to")
		}},
	{[]string{contribDomain + "::QLinearWhere"}, "the condition must broadcast with the two others; ONNX Runtime does not look",
		func(m *model, fault string) bool { return refusal(fault) && strings.Contains(fault, "broadcast: got") }},
	{[]string{"RNN", "GRU", "LSTM"}, "numbers that grow from step to step differ by more roundings than others",
		func(m *model, fault string) bool { return isGrown(fault) }},
	{[]string{"Loop", "Scan"}, "a body may return its parameters as they are, as the number of the round; ONNX Runtime writes the next ones into their bytes",
		func(m *model, fault string) bool {
			body, ok := m.node().get("body").(*graph)
			if !ok || refusal(fault) {
				return false
			}
			outputs := body.outputs
			if m.node().op == "Loop" {
				outputs = outputs[1:] // less the condition
			}
			return slices.ContainsFunc(outputs, func(out typed) bool {
				return !slices.ContainsFunc(body.nodes, func(n *node) bool { return slices.Contains(n.out, out.name) })
			})
		}},
	{[]string{"Concat", "ConcatFromSequence", contribDomain + "::QLinearConcat"}, "operands without elements have sizes that fit too; ONNX Runtime leaves them out before it looks",
		func(m *model, fault string) bool {
			return refusal(fault) && (withoutElements.MatchString(fault) || slices.ContainsFunc(m.values, func(v *value) bool { return elements(v.dims) == 0 }))
		}},
	{[]string{"GlobalMaxPool", "MaxPool", "MaxRoiPool", "Hardmax"}, "where a NaN stands among numbers is left open; ONNX Runtime goes by where it lies",
		func(m *model, fault string) bool { return m.hasNaN() && !refusal(fault) }},
	{[]string{"MaxRoiPool", "MaxPool", "GlobalMaxPool"}, "the largest of negative infinities is one, and of a window in the pads alone; ONNX Runtime begins with the least number",
		func(m *model, fault string) bool {
			return !refusal(fault) && (m.hasInf() || strings.Contains(fault, "got -Inf"))
		}},
	{[]string{"Gelu"}, "by erf the result at negative infinity is the limit, 0, as of all numbers below -14, since a test for it would take an instruction of every vector; by tanh it is NaN, as by the formula, which in ONNX Runtime and the reference implementation multiplies infinity by 0 in both forms",
		func(m *model, fault string) bool {
			return m.anywhere(func(f float64) bool { return f < -1e4 }) && strings.Contains(fault, "want NaN")
		}},
	{[]string{"MatMulInteger", "ConvInteger", "QLinearMatMul", "com.microsoft::MatMulIntegerToFloat", "com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul", "MatMul"}, "a sum of nothing is 0; ONNX Runtime leaves its memory as it is",
		func(m *model, fault string) bool { return m.isEmpty() }},
	{pools, "with auto_pad VALID the formula of ceil_mode rounds nothing up; ONNX Runtime's does",
		func(m *model, fault string) bool {
			return m.node().get("auto_pad") == "VALID" && m.node().get("ceil_mode") == int64(1)
		}},
	{pools, "a kernel smaller than its stride needs no pads with auto_pad SAME; ONNX Runtime begins inside where it pools, though not where it convolves",
		func(m *model, fault string) bool {
			return m.same() && m.leaps()
		}},
	{[]string{"Mod"}, "of integers too the remainder is exact; with fmod ONNX Runtime computes in double precision",
		func(m *model, fault string) bool {
			return m.of(dtype.I64, dtype.U64) && m.node().get("fmod") == int64(1)
		}},
	{[]string{"Gemm"}, "a product of nothing is 0, and beta counts all the same; ONNX Runtime forgets it",
		func(m *model, fault string) bool { return m.isEmpty() }},
	{[]string{"QuantizeLinear"}, "which integer a NaN becomes is left open: it is the zero point; ONNX Runtime's is the least number",
		func(m *model, fault string) bool { return m.hasNaN() && !refusal(fault) }},
	{[]string{"QuantizeLinear", "Cast", "CastLike"}, "without saturation an element that rounds to more than the largest number of 8 bits is NaN or infinite; ONNX Runtime still saturates elements near it",
		func(m *model, fault string) bool {
			return m.node().get("saturate") == int64(0) && strings.Contains(fault, "got NaN") && strings.Contains(fault, "448")
		}},
	{[]string{"Cast", "CastLike"}, "to integers of 4 bits and less halves go to the even one, as the specification of the types has it; ONNX Runtime sends them away from 0",
		func(m *model, fault string) bool {
			return m.anywhere(func(f float64) bool { return math.Abs(f) != math.Trunc(math.Abs(f)) && 2*f == math.Trunc(2*f) })
		}},
	{[]string{"Pow"}, "a power that no integer is, as NaN, may become any; Tenure's is 0",
		func(m *model, fault string) bool { return m.operand(0).dt.IsInt() }},
	{[]string{"Attention"}, "scores that a mask takes out are negative infinities; ONNX Runtime returns the least number",
		func(m *model, fault string) bool {
			return strings.Contains(fault, "output y3") && strings.Contains(fault, "got -Inf")
		}},
	{[]string{"Attention"}, "a causal mask begins after the past keys; ONNX Runtime lets its end meet that of the keys where queries and new keys differ in number",
		func(m *model, fault string) bool { return m.node().get("is_causal") == int64(1) && m.operand(4) != nil }},
	{[]string{"Conv", "ConvInteger", "QLinearConv", "com.microsoft::FusedConv", "com.microsoft::QLinearConv"}, "a kernel smaller than its stride needs no pads with auto_pad SAME; ONNX Runtime begins inside, or beside, where more than one element is left over",
		func(m *model, fault string) bool {
			return m.same() && m.leaps() && !refusal(fault)
		}},
	{[]string{"Cast", "CastLike"}, "an element type of powers of two has no sign: a negative number is NaN, as in ml_dtypes; ONNX Runtime returns the least power",
		func(m *model, fault string) bool {
			return strings.Contains(fault, "got NaN, want 5.87") && m.anywhere(func(f float64) bool { return f < 0 })
		}},
	{[]string{"CastLike"}, "the attribute round_mode counts as in Cast; ONNX Runtime forgets it",
		func(m *model, fault string) bool {
			return m.node().get("round_mode") != nil && m.operand(1).dt == dtype.F8E8M0 && !refusal(fault)
		}},
	{[]string{"MaxUnpool"}, "indices count in the size that follows from the window, as in the public case, also where output_shape states a larger one; ONNX Runtime counts in that",
		func(m *model, fault string) bool { return m.operand(2) != nil }},
	{[]string{"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}, "the distributions agree; the numbers are those of another generator, and repeat with tenure.WithSeed or a seed of the node",
		func(*model, string) bool { return false }}, // drawn by no generator
	{[]string{"com.microsoft::QLinearAveragePool"}, "elements beyond the pads do not count, as in AveragePool; ONNX Runtime counts them with ceil_mode",
		func(m *model, fault string) bool {
			return m.node().get("ceil_mode") == int64(1) && m.node().get("count_include_pad") == int64(1) && !refusal(fault)
		}},
	{[]string{"com.microsoft::DynamicQuantizeLSTM"}, "inputs and states stay floats; ONNX Runtime quantises them for each product",
		func(*model, string) bool { return false }}, // within the tolerance
	{[]string{"com.microsoft::MatMulNBits"}, "zeros in bytes count with groups by index too; ONNX Runtime takes the middle",
		func(m *model, fault string) bool {
			return m.operand(4) != nil && m.operand(3) != nil && m.operand(3).dt == dtype.U8 && !refusal(fault)
		}},
	{[]string{"com.microsoft::MatMulNBits"}, "with accuracy_level 4 activations are quantised for weights of 2 bits, too; for some of these ONNX Runtime keeps floats",
		func(m *model, fault string) bool {
			return m.node().get("accuracy_level") == int64(4) && m.node().get("bits") == int64(2) && !refusal(fault)
		}},
	{[]string{"com.microsoft::MatMulBnb4"}, "without transB the rows of the weights are those of the documentation; ONNX Runtime takes columns, and bytes beyond them",
		func(m *model, fault string) bool { return m.node().get("transB") == int64(0) && !refusal(fault) }},
	{[]string{"com.microsoft::QMoE"}, "activations stay floats; for some weights of 2 and 8 bits in blocks ONNX Runtime quantises them",
		func(m *model, fault string) bool {
			return m.node().get("expert_weight_bits") != int64(4) && m.node().get("block_size") != nil && !refusal(fault)
		}},
	{[]string{"com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul"}, "a matrix is transposed also when it meets a vector; ONNX Runtime forgets it",
		func(m *model, fault string) bool { return len(m.operand(0).dims) == 1 || len(m.operand(1).dims) == 1 }},
	{[]string{"com.microsoft::MultiHeadAttention"}, "a causal mask of queries and keys that differ in number is not supported",
		func(m *model, fault string) bool { return refusal(fault) && m.node().get("unidirectional") == int64(1) }},
	{[]string{"Softplus"}, "softplus of large numbers is the number; ONNX Runtime's exponential overflows",
		func(m *model, fault string) bool { return m.of(dtype.F64) && strings.Contains(fault, "want +Inf") }},
	{[]string{"ReduceProd"}, "a product of integers wraps as their sum does; ONNX Runtime returns the least number where it overflows",
		func(m *model, fault string) bool {
			return m.of(dtype.I32) && strings.Contains(fault, "want -2147483648") || m.of(dtype.I64) && strings.Contains(fault, "want -9223372036854775808")
		}},
	{[]string{"RNN", "GRU", "LSTM"}, "softplus of large numbers is the number; ONNX Runtime's exponential overflows",
		func(m *model, fault string) bool {
			names, _ := m.node().get("activations").([]string)
			return slices.Contains(names, "Softplus") && strings.Contains(fault, "Inf")
		}},
	{[]string{"ReduceLogSumExp"}, "what has a NaN sums to NaN; ONNX Runtime's maximum goes by where it lies",
		func(m *model, fault string) bool { return m.hasNaN() && !refusal(fault) }},
	{[]string{"Sign"}, "the sign of a NaN is one, as in numpy; ONNX Runtime returns 0 for halves",
		func(m *model, fault string) bool { return m.hasNaN() && m.of(dtype.F16, dtype.BF16) }},
	{[]string{"Resize"}, "tf_crop_and_resize samples its region also where the size stays, as the text has it; ONNX Runtime copies such an axis",
		func(m *model, fault string) bool {
			return m.node().get("coordinate_transformation_mode") == "tf_crop_and_resize" && !refusal(fault) && m.keepsSize()
		}},
	{[]string{"Resize"}, "integers that are filtered are cut once, as in the reference implementation; ONNX Runtime rounds them after each axis, and takes negative ones of 8 bits as 0",
		func(m *model, fault string) bool {
			return m.node().get("antialias") == int64(1) && m.of(dtype.I8, dtype.U8, dtype.I32) && !refusal(fault)
		}},
	{[]string{"Resize"}, "at a tie of nearest, asymmetric and symmetric coordinates are quotients in single precision; ONNX Runtime rounds some otherwise",
		func(m *model, fault string) bool {
			transform := m.node().get("coordinate_transformation_mode")
			mode := m.node().get("mode")
			return (transform == "asymmetric" || transform == "half_pixel_symmetric") && (mode == nil || mode == "nearest") && !refusal(fault) && m.tied()
		}},
	{[]string{"Resize"}, "keep_aspect_ratio_policy counts with negative axes too; ONNX Runtime forgets it",
		func(m *model, fault string) bool {
			axes, _ := m.node().get("axes").([]int64)
			policy := m.node().get("keep_aspect_ratio_policy")
			return policy != nil && policy != "stretch" && slices.ContainsFunc(axes, func(a int64) bool { return a < 0 })
		}},
}

// same reports whether a window pads itself so that there is a result for each
// stride.
func (m *model) same() bool {
	auto, _ := m.node().get("auto_pad").(string)
	return strings.HasPrefix(auto, "SAME")
}

// leaps reports whether a window is smaller than its stride along some axis.
func (m *model) leaps() bool {
	kernel, ok := m.node().get("kernel_shape").([]int64)
	if !ok { // a convolution has it from its weights
		at := 1
		if m.node().op == "QLinearConv" {
			at = 3
		}
		kernel = int64s(m.operand(at).dims[2:])
	}
	strides, _ := m.node().get("strides").([]int64)
	for i, stride := range strides {
		dilation := int64(1)
		if list, ok := m.node().get("dilations").([]int64); ok {
			dilation = list[i]
		}
		if (kernel[i]-1)*dilation+1 < stride {
			return true
		}
	}
	return false
}

// hardlyDiffers reports whether the elements of a group of channels are nearly
// one number.
func (m *model) hardlyDiffers() bool {
	x := m.operand(0)
	groups, ok := m.node().get("num_groups").(int64)
	if !ok {
		groups = int64(x.dims[1])
	}
	list := decode(x.dt, x.data)
	for part := range slices.Chunk(list, max(1, len(list)/max(1, x.dims[0]*int(groups)))) {
		lo, hi := part[0].f, part[0].f
		for _, e := range part {
			lo, hi = min(lo, e.f), max(hi, e.f)
		}
		if hi-lo < max(math.Abs(lo), math.Abs(hi))/64 {
			return true
		}
	}
	return false
}

// dilated reports whether a window has a dilation other than 1.
func dilated(n *node) bool {
	switch list := n.get("dilations").(type) {
	case []int64:
		return slices.ContainsFunc(list, func(v int64) bool { return v != 1 })
	}
	return false
}

// resized lists the axes that the operands of a Resize name: their sizes, and
// the given scale or size.
func (m *model) resized(each func(in int, scale float64, out int)) {
	dims := m.operand(0).dims
	axes, named := m.node().get("axes").([]int64)
	size := func(i int) int {
		if named {
			return dims[(int(axes[i])+len(dims))%len(dims)]
		}
		return dims[i]
	}
	if sizes := m.operand(3); sizes != nil {
		for i, x := range decode(sizes.dt, sizes.data) {
			each(size(i), float64(x.i)/float64(size(i)), int(x.i))
		}
		return
	}
	scales := m.operand(2)
	if m.opset < 11 {
		scales = m.operand(1)
	}
	for i, x := range decode(dtype.F32, scales.data) {
		each(size(i), x.f, int(float32(size(i))*float32(x.f)))
	}
}

// keepsSize reports whether an axis of a Resize keeps its size.
func (m *model) keepsSize() bool {
	keeps := false
	m.resized(func(in int, _ float64, out int) { keeps = keeps || in == out })
	return keeps
}

// tied reports whether a result of a nearest Resize lies so near to the middle
// between two elements, or to an element where it rounds up or down, that a
// rounding error decides.
func (m *model) tied() bool {
	tie := false
	m.resized(func(in int, _ float64, _ int) {
		m.resized(func(_ int, scale float64, _ int) { // of any axis, since a policy takes one for all
			out := math.Round(float64(in) * scale)
			for x := range int(out) + 1 {
				at := 2 * float64(x) / scale
				centred := (2*float64(x)+1-out)/scale + float64(in) - 1
				tie = tie || math.Abs(at-math.Round(at)) < 1e-5 || math.Abs(centred-math.Round(centred)) < 1e-5
			}
		})
	})
	return tie
}
