package ortdiff_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx"
)

// schema is what an operator may have: how many operands, and which attributes.
type schema struct {
	operands   int
	attributes []string
}

// schemas reads those that ONNX Runtime knows.
func schemas(t *testing.T) map[string]schema {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "attributes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]schema{}
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		n, err := strconv.Atoi(f[1])
		if err != nil {
			t.Fatalf("attributes.txt: got line %q, want an operator, a number and attributes", line)
		}
		all[f[0]] = schema{n, f[2:]}
	}
	return all
}

// TestSchemas holds the file to the ONNX Runtime that is installed, if it is
// the version of which the file was written.
func TestSchemas(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "attributes.txt"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(python(t, "onnxruntime"), filepath.Join("testdata", "attributes.py")).Output()
	if err != nil {
		t.Fatal(err)
	}
	version, _, _ := strings.Cut(string(want), ":")
	if installed, _, _ := strings.Cut(string(got), ":"); installed != version {
		t.Skipf("attributes.txt is of %q, and %q is installed: write it again with attributes.py", version, installed)
	}
	if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r"), nil), want) {
		t.Error("attributes.txt differs from what attributes.py writes")
	}
}

// drawn counts attributes with their values, and operands by their place, in
// the models of an operator.
type drawn struct {
	attributes map[string]map[string]bool
	without    map[string]bool // attributes that some model left to its default
	operands   map[int]bool
}

// look draws models of an operator, and runs none.
func look(o *operator, models int) *drawn {
	d := &drawn{map[string]map[string]bool{}, map[string]bool{}, map[int]bool{}}
	_, name, ok := strings.Cut(o.name, "::")
	if !ok {
		name = o.name
	}
	for i := range models {
		d.nodes(o.model(i, 4).graph.nodes, name)
	}
	return d
}

func (d *drawn) nodes(list []*node, name string) {
	for _, n := range list {
		for _, a := range n.attrs {
			if g, ok := a.value.(*graph); ok {
				d.nodes(g.nodes, name)
			}
		}
		if n.op != name {
			continue
		}
		for _, a := range n.attrs {
			if d.attributes[a.name] == nil {
				d.attributes[a.name] = map[string]bool{}
			}
			text := "a graph"
			if _, ok := a.value.(*graph); !ok {
				text = fmt.Sprint(a.value)
			}
			d.attributes[a.name][text] = true
		}
		for known := range d.attributes {
			if n.get(known) == nil {
				d.without[known] = true
			}
		}
		for i, operand := range n.in {
			if operand != "" {
				d.operands[i] = true
			}
		}
	}
}

// TestEverythingIsDrawn holds the generators against the schemas: an operand or
// an attribute that no model has is in undrawnParts, with the reason.
func TestEverythingIsDrawn(t *testing.T) {
	all := schemas(t)
	excused := map[string]bool{}
	for _, s := range onnx.Operators() {
		want, known := all[s.Name]
		draw := generatorOf(s)
		if draw == nil {
			continue // TestOperators reports it
		}
		if !known {
			t.Logf("operator %s: ONNX Runtime does not know it", s.Name)
			continue
		}
		d := look(&operator{name: s.Name, from: int(s.From), till: int(s.Till), draw: draw}, 600)
		missing := func(part string) {
			key := s.Name + "." + part
			if _, ok := undrawnParts[key]; ok {
				excused[key] = true
				return
			}
			t.Errorf("no model has %s, and undrawnParts does not say why", key)
		}
		for _, name := range want.attributes {
			switch values := d.attributes[name]; {
			case len(values) == 0:
				missing(name)
			case len(values) == 1 && !d.without[name] && !values["a graph"]:
				t.Errorf("%s.%s has one value in all models, want others too", s.Name, name)
			}
		}
		if want.operands < 20 {
			for i := range want.operands {
				if !d.operands[i] {
					missing(strconv.Itoa(i))
				}
			}
		}
	}
	for key := range undrawnParts {
		if !excused[key] {
			t.Errorf("undrawnParts: %s is drawn, or nothing of that name exists: remove the row", key)
		}
	}
}

// Reasons of undrawnParts.
const (
	olderPart   = "an opset before the first one that is read"
	refusedPart = "refused when the model is read"
	ignoredPart = "says what is so without it"
	foreignPart = "ONNX Runtime has it on other devices only"
)

// undrawnParts are attributes and operands that no model has, and why.
var undrawnParts = map[string]string{
	"MeanVarianceNormalization.across_channels": olderPart, "MeanVarianceNormalization.normalize_variance": olderPart,
	"Upsample.height_scale": olderPart, "Upsample.width_scale": olderPart, "Scan.directions": "opset 8, refused when the model is read",
	"Constant.sparse_value": "the models of package onnx in sparse.txtar have it",
	"Optional.type":         "an optional that is empty has no value to compare", contribDomain + "::EmbedLayerNormalization.8": refusedPart,
	contribDomain + "::FusedGemm.activation_gamma": ignoredPart, contribDomain + "::MatMulNBits.weight_prepacked": refusedPart,
	contribDomain + "::QAttention.do_rotary": refusedPart, contribDomain + "::QAttention.past_present_share_buffer": refusedPart,
	contribDomain + "::Attention.6": refusedPart, contribDomain + "::Attention.do_rotary": refusedPart,
	contribDomain + "::Attention.past_present_share_buffer": refusedPart, contribDomain + "::Attention.rotary_embedding_dim": ignoredPart,
	groupQueryName + ".12": refusedPart, groupQueryName + ".13": refusedPart, groupQueryName + ".14": foreignPart,
	groupQueryName + ".15": foreignPart, groupQueryName + ".16": refusedPart, groupQueryName + ".k_norm_epsilon": foreignPart, groupQueryName + ".k_quant_type": refusedPart,
	groupQueryName + ".kv_cache_bit_width": refusedPart, groupQueryName + ".q_norm_epsilon": foreignPart, groupQueryName + ".qk_norm_epsilon": foreignPart,
	groupQueryName + ".sliding_window_cache": refusedPart, groupQueryName + ".v_quant_type": refusedPart,
	contribDomain + "::CausalConvWithState.channels_last": refusedPart, contribDomain + "::CausalConvWithState.input_channel_offset": refusedPart, contribDomain + "::CausalConvWithState.input_channels": refusedPart,
	contribDomain + "::CausalConvWithState.ndim": refusedPart, contribDomain + "::CausalConvWithState.state_channels_last": refusedPart, contribDomain + "::CausalConvWithState.state_length": refusedPart,
	contribDomain + "::CausalConvWithState.state_update_capacity": refusedPart, contribDomain + "::CausalConvWithState.state_window": refusedPart, contribDomain + "::GatedAdd.3": refusedPart,
	contribDomain + "::LinearAttention.state_window": refusedPart, contribDomain + "::MoE.swiglu_limit_after_activation": refusedPart, contribDomain + "::MoE.use_sparse_mixer": refusedPart,
	contribDomain + "::MoE.6": foreignPart, contribDomain + "::MoE.7": foreignPart, contribDomain + "::QMoE.fc1_expert_weight_bits": foreignPart,
	contribDomain + "::QMoE.fc2_expert_weight_bits": foreignPart, contribDomain + "::QMoE.fc3_expert_weight_bits": foreignPart, contribDomain + "::QMoE.quant_type": refusedPart,
	contribDomain + "::QMoE.swiglu_limit_after_activation": refusedPart, contribDomain + "::QMoE.use_sparse_mixer": refusedPart, contribDomain + "::PackedMultiHeadAttention.mask_filter_value": ignoredPart,
}
