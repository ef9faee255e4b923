package op

import (
	"strings"

	"github.com/tenure-go/tenure/shape"
)

var linearAttentionOps = []*Def{
	{
		Name: "linear_attention", ONNX: "LinearAttention",
		Doc: "runs linear attention: each token writes its value into a state [N,heads,keys,values] under its key and reads it by its query [N,length,heads*size]; " +
			"operands q, k, v, past state, decay, rate; optionally returns the present state",
		MinArgs: 3, MaxArgs: 6, MinResults: 1, MaxResults: 2,
		Attrs: []AttrDef{needed("q_num_heads", Int), needed("kv_num_heads", Int), floatAttr("scale", 0), stringAttr("update_rule", "gated_delta")},
		Infer: inferLinearAttention, Alias: Aliases(Rule{Arg: 3, Result: 1, Kind: Update}),
	},
}

// headSize is what each of the heads in the last of three dimensions has.
func (s *Sig) headSize(arg int, last shape.Dim, heads int64) (shape.Dim, error) {
	n, ok := last.Size()
	if !ok {
		return shape.Unknown, nil
	}
	if int64(n)%heads != 0 {
		return shape.Unknown, badShape("operand %d: got %s, want a multiple of the %d heads in the last dimension", arg, s.Args[arg], heads)
	}
	return shape.N(n / int(heads)), nil
}

func inferLinearAttention(s *Sig) error {
	if err := s.linearAttentionTypes(); err != nil {
		return err
	}
	qh, kh := s.Int("q_num_heads"), s.Int("kv_num_heads")
	if kh < 1 || qh < kh || qh%kh != 0 || qh > maxSize {
		return badShape("got %d heads of q and %d of k and v, want a multiple", qh, kh)
	}
	var dims [3][]shape.Dim
	var sizes [3]shape.Dim
	var err error
	for i, heads := range []int64{qh, kh, kh} {
		if dims[i], err = s.dimsOf(i, 3); err != nil {
			return err
		}
		if sizes[i], err = s.headSize(i, dims[i][2], heads); err != nil {
			return err
		}
	}
	state, err := s.dimsOf(0, 3)
	if err != nil {
		return err
	}
	state = []shape.Dim{state[0], shape.N(int(kh)), shape.Unknown, shape.Unknown}
	if s.Has(3) && s.Args[3].Shape != nil {
		if state, err = s.dimsOf(3, 4); err != nil {
			return err
		}
	}
	heads := shape.N(int(kh))
	for _, p := range []struct {
		meaning string
		a, b    *shape.Dim
	}{
		{"batch", &dims[0][0], &dims[1][0]}, {"batch", &dims[1][0], &dims[2][0]}, {"batch", &dims[0][0], &dims[2][0]}, {"batch", &dims[0][0], &state[0]},
		{"length", &dims[0][1], &dims[1][1]}, {"length", &dims[0][1], &dims[2][1]}, {"heads of the state", &state[1], &heads},
		{"head size of q and k", &sizes[0], &sizes[1]}, {"head size of k and the state", &sizes[1], &state[2]}, {"head size of v and the state", &sizes[2], &state[3]},
	} {
		if err := s.meet(p.meaning, p.a, p.b); err != nil {
			return err
		}
	}
	if err := s.gates(dims[0], dims[1], kh); err != nil {
		return err
	}
	last := shape.Unknown
	if n, ok := state[3].Size(); ok {
		total, fits := mulSize(n, int(qh))
		if !fits {
			return badShape("got %d heads of %d, want less than 2^58 together", qh, n)
		}
		last = shape.N(total)
	}
	if err := s.give(0, s.Args[0].DType, dims[0][0], dims[0][1], last); err != nil || len(s.Results) == 1 {
		return err
	}
	dt := s.Args[0].DType
	if s.Has(3) {
		dt = s.Args[3].DType
	}
	return s.give(1, dt, state...)
}

func (s *Sig) linearAttentionTypes() error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	for _, i := range []int{1, 2, 4, 5} {
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	if err := s.want(3, floats); err != nil {
		return err
	}
	rule, err := s.wantOneOf("update_rule", "linear", "gated", "delta", "gated_delta")
	if err != nil {
		return err
	}
	if strings.HasPrefix(rule, "gated") && !s.Has(4) {
		return badShape("update_rule %q: operand 4, the decay, is absent, want a value", rule)
	}
	if strings.HasSuffix(rule, "delta") && !s.Has(5) {
		return badShape("update_rule %q: operand 5, the rate, is absent, want a value", rule)
	}
	return nil
}

// gates checks the decay, per key or per head, and the rate, per head or one.
func (s *Sig) gates(q, k []shape.Dim, heads int64) error {
	for i, wide := range []shape.Dim{k[2], shape.N(1)} {
		arg := 4 + i
		if !s.Has(arg) {
			continue
		}
		if err := s.wantDims(arg, []shape.Dim{q[0], q[1], shape.Unknown}); err != nil {
			return err
		}
		if sh := s.Args[arg].Shape; sh != nil {
			_, perHead := unify(sh.Dim(2), shape.N(int(heads)))
			if _, ok := unify(sh.Dim(2), wide); !ok && !perHead {
				return badShape("operand %d: got %s, want %s or %d in the last dimension", arg, s.Args[arg], wide, heads)
			}
		}
	}
	return nil
}
