package ortdiff_test

import (
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// With -evaluator models are held against ONNX's reference implementation,
// which has types and opsets that ONNX Runtime has not. Where the two differ
// and ONNX Runtime does what Tenure does, the case is closed; this table has
// the others, of onnx 1.23.
var evaluatorDepartures = []departure{
	{nil, "a result has another element type or rank than the specification states", func(_ *model, fault string) bool {
		got, want, ok := strings.Cut(strings.SplitN(fault, "\n", 2)[0], ", want ")
		_, got, typed := strings.Cut(got, ": got ")
		return ok && typed && strings.Contains(got, "[") && strings.Contains(want, "[")
	}},
	{nil, "where a NaN or an infinity goes depends on the order of the terms, and on weights of zero that dilate a window", func(m *model, fault string) bool {
		return !refusal(fault) && (m.hasNaN() || m.hasInf())
	}},
	{nil, "double precision is computed with constants of single precision, or in it", func(m *model, fault string) bool {
		return !refusal(fault) && m.of(dtype.F64) && m.agreesInSingle(fault)
	}},
	{nil, "half precision is rounded after each term", func(m *model, fault string) bool {
		return !refusal(fault) && m.of(dtype.F16, dtype.BF16)
	}},
	{[]string{"GRU", "LSTM", "RNN"}, "directions, layouts, lengths, clip, input_forget and activations do not count", func(m *model, fault string) bool {
		for _, name := range []string{"direction", "layout", "clip", "input_forget", "activations"} {
			if m.node().get(name) != nil {
				return true
			}
		}
		return m.operand(4) != nil
	}},
	{[]string{"Hardmax", "LogSoftmax", "Softmax"}, "before opset 13 the axes from the given one on are one; it takes the one alone", func(m *model, _ string) bool { return m.opset < 13 }},
	{[]string{"AffineGrid"}, "aligned corners of an axis of one point are its middle, as in PyTorch; it takes the end", func(m *model, _ string) bool { return m.node().get("align_corners") == int64(1) }},
	{[]string{"AveragePool"}, "before opset 7 pads do not count", func(m *model, fault string) bool { return m.opset < 7 && !refusal(fault) }},
	{[]string{"BatchNormalization"}, "before opset 14 a momentum makes it train", func(m *model, _ string) bool { return m.opset < 14 }},
	{[]string{"Cast", "CastLike"}, "a power of two has no sign: a negative number is NaN, as in ml_dtypes; it takes the size of the number", func(m *model, fault string) bool {
		return strings.Contains(fault, "got NaN")
	}},
	{[]string{"BlackmanWindow", "HammingWindow", "HannWindow"}, "a symmetric window of one point is a quotient of zeros in the function of the specification; integers are cut from it", func(m *model, _ string) bool {
		return true
	}},
	{[]string{"Loop"}, "a loop without a condition runs until its body says no, as in ONNX Runtime; it does not run", func(m *model, _ string) bool { return m.operand(1) == nil }},
	{[]string{"LpNormalization"}, "a norm takes absolute values", func(m *model, _ string) bool { return true }},
	{[]string{"MaxPool", "AveragePool", "LpPool"}, "with auto_pad SAME the result has one element for each stride, of dilated windows too, and no pads where a kernel is smaller than its stride", func(m *model, fault string) bool {
		return m.same() && (m.leaps() || dilated(m.node()))
	}},
	{[]string{"MaxPool", "AveragePool", "LpPool"}, "without ceil_mode a window larger than the padded input is an error; it returns nothing, or a result", func(_ *model, fault string) bool {
		return refusal(fault) && strings.Contains(fault, "want at least the window")
	}},
	{[]string{"Resize"}, "corners and regions (align_corners, tf_crop_and_resize) meet the first and the last element of the result, as in ONNX Runtime and PyTorch; it divides by the size before it is rounded. A scale that is rounded misses ties", func(m *model, fault string) bool {
		return !refusal(fault)
	}},
	{[]string{"StringNormalizer"}, "letters keep their accents", func(*model, string) bool { return true }},
	{[]string{"Unique"}, "without sorting the first one comes first, also along an axis", func(m *model, _ string) bool { return m.node().get("sorted") == int64(0) }},
	{[]string{"And", "Or", "Xor", "Add", "Sub", "Mul", "Div", "Pow", "Gemm", "Equal", "Greater", "Less"}, "in opset 6 an axis says where the second operand begins, and beta counts without broadcast", func(m *model, _ string) bool {
		return m.opset < 7
	}},
	{[]string{"Attention"}, "the fourth output of mode 0 is the plain product; it has passed softcap", func(m *model, fault string) bool {
		return m.node().get("softcap") != nil && strings.HasPrefix(fault, "output y3")
	}},
	{[]string{"ConstantOfShape"}, "numbers of 64 bits without a sign are not supported above those with one", func(m *model, fault string) bool { return refusal(fault) && m.opset > 0 }},
	{[]string{"ConvTranspose"}, "with auto_pad SAME and a kernel smaller than its stride the result begins with the first element, as TensorFlow's; it begins with zeros", func(m *model, fault string) bool {
		return m.same() && m.leaps()
	}},
	{[]string{"Expand"}, "parts of complex numbers are copied; it multiplies", func(m *model, _ string) bool { return m.of(dtype.C64) }},
	{[]string{"ConvTranspose"}, "each group has its own part of the bias", func(m *model, fault string) bool {
		return m.node().get("group") != nil && m.operand(2) != nil && !refusal(fault)
	}},
	{[]string{mlDomain + "::LabelEncoder"}, "of equal keys the first one counts, as in ONNX Runtime; it takes the last one", func(_ *model, fault string) bool { return !refusal(fault) }},
	{[]string{"LRN"}, "channels count also where the window reaches beyond the last one, of which an even size has more", func(m *model, fault string) bool { return !refusal(fault) }},
	{[]string{"LpPool"}, "elements beyond the pads do not count; it scales the sum up for the missing ones", func(m *model, _ string) bool { return m.node().get("ceil_mode") == int64(1) }},
	{[]string{"MatMulInteger"}, "a zero point of the first operand is that of a row; it takes columns where there is a batch", func(m *model, _ string) bool { return m.operand(2) != nil }},
	{[]string{"Pow", "Shrink"}, "what no integer is may become any", func(m *model, _ string) bool { return m.operand(0).dt.IsInt() }},
	{[]string{"StringSplit"}, "trailing white space is removed, also from strings that are not split, as in ONNX Runtime", func(m *model, _ string) bool { return m.delimiter() == "" }},
	{[]string{"Slice", "Squeeze", "Unsqueeze"}, "axes of strings must be known when the model is read", func(m *model, fault string) bool {
		return m.operand(0).dt == dtype.String && strings.Contains(fault, "not known at load")
	}},
}

// agreesInSingle reports whether a fault is of two numbers that single
// precision does not tell apart, or hardly.
func (m *model) agreesInSingle(fault string) bool {
	var i int
	var got, want float64
	line, _, _ := strings.Cut(fault, "\n")
	_, line, _ = strings.Cut(line, ": ")
	if n, _ := fmt.Sscanf(line, "element %d: got %f, want %f", &i, &got, &want); n != 3 {
		return false
	}
	return tolerance{rel: 64, abs: 256}.close(got, want, dtype.F32, scale(m.values...))
}
