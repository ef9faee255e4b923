package pass

import (
	"bytes"
	"errors"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Structure is a final program for all sizes at which the passes would make the
// same one. It holds what fold did with each call of the program, as steps
// that are taken again for other sizes (the shape rules, and the evaluation of
// what becomes a constant), and guards: every answer about sizes from which a
// pass drew a decision. Where each step has the outcome and each guard the
// answer of before, all passes would decide as before.
//
// A structure holds no weights: it reads them in the table of the context that
// it was made with. It is used by one goroutine at a time.
type Structure struct {
	program   *ir.Program // final
	constants Constants
	params    []int

	steps     []*visit
	allowance allowance
	guards    []guard
	constant  []valueGuard
	views     []viewGuard
	aliases   aliases
	copies    []copied

	declined []plan.Declined
	reported []plan.Copy
	template []op.Type // by ID: for the sizes of the first program
	weights  []*ir.Value
	origins  []origin // by ID: where a constant lies that shares bytes
	varying  []int    // constants that depend on sizes
	varies   []bool   // by ID: whether it is one of them
	small    [][]byte // by ID: copies of small constants that do not, which steps read
	values   []int    // of the program

	types []op.Type // by ID: for the sizes of the last Instance
	data  [][]byte  // by ID: of varying constants
	slab  slab
	room  []byte // scratch of kernels

	ignored func(kind string) bool // tests leave a kind of guard out
}

// origin is a place in the bytes of another constant.
type origin struct{ of, offset int }

// Structure returns the structure of the context's program after
// [Specialise], if [Context.Record] was called before. It is nil where the
// program is for its sizes alone: the reason says why. The program must not be
// changed any more.
func (c *Context) Structure() (s *Structure, reason string) {
	r := c.recorder
	if r == nil {
		return nil, "nothing was recorded"
	}
	if r.pinned != "" {
		return nil, r.pinned
	}
	n := c.Program.NumIDs()
	s = &Structure{program: c.Program, constants: c.Constants, params: idsOf(c.Program.Body.Params),
		steps: r.steps, allowance: r.allowance, guards: r.guards, constant: r.values, views: r.views, copies: r.copies,
		declined: c.Declined, reported: c.Copies,
		template: make([]op.Type, n), weights: make([]*ir.Value, n), varies: make([]bool, n), small: make([][]byte, n), origins: make([]origin, n), types: make([]op.Type, n), data: make([][]byte, n)}
	if reason := s.complete(c); reason != "" {
		return nil, reason
	}
	// The steps are taken once for the sizes of now: what they find must be what is there.
	params := make([]op.Type, len(s.params))
	for i, id := range s.params {
		params[i] = s.template[id]
	}
	if why := s.fit(params); why != "" {
		return nil, "the steps do not repeat: " + why
	}
	if !slices.Equal(s.types, s.template) {
		return nil, "the steps do not repeat: types"
	}
	s.aliases = s.aliasesOf()
	return s, ""
}

// complete fills the tables by ID, and says why the structure cannot know the
// types of its program.
func (s *Structure) complete(c *Context) (reason string) {
	for v := range c.varying {
		s.varying = append(s.varying, v.ID)
		s.varies[v.ID] = true
	}
	slices.Sort(s.varying)
	typed := make([]bool, len(s.template))
	note := func(v *ir.Value) {
		if v == nil {
			return
		}
		s.template[v.ID] = v.Type
		if v.Kind == ir.Weight {
			s.weights[v.ID] = v
			typed[v.ID] = typed[v.ID] || !c.varying[v]
		}
		if !v.Type.IsStatic() {
			reason = "a size that depends on data"
		}
	}
	for _, v := range c.recorder.met {
		note(v)
	}
	for _, st := range s.steps {
		for i, id := range st.results {
			typed[id] = true
			typed[st.made[i]] = true
		}
	}
	for _, v := range c.Program.Body.Params {
		typed[v.ID] = true
		note(v)
		s.values = append(s.values, v.ID)
	}
	for _, w := range c.Program.Weights {
		note(w)
		s.values = append(s.values, w.ID)
	}
	for _, cp := range s.copies {
		typed[cp.id] = typed[cp.of]
	}
	check := func(v *ir.Value) {
		note(v)
		if v != nil && !typed[v.ID] {
			reason = "a value whose type no step finds"
		}
	}
	c.Program.Walk(func(_ *ir.Block, call *ir.Call) {
		for _, a := range call.Args {
			check(a.Value)
		}
		for _, r := range call.Results {
			check(r)
			if r != nil {
				s.values = append(s.values, r.ID)
			}
		}
	})
	return reason
}

// Types returns the types of the program's values, by ID, for parameters of
// these static types, which fit the model's, and enters the constants that
// depend on them in the table. It returns nil where the passes would, or might,
// make another program.
func (s *Structure) Types(params []op.Type, constants Constants) ir.Types {
	if s.fit(params) != "" {
		return nil
	}
	types := make(ir.Types, len(s.types))
	for _, id := range s.values {
		types[id] = s.types[id]
	}
	for _, w := range s.program.Weights {
		if !s.derive(w, constants) {
			return nil
		}
	}
	if s.aliases.ranges.again && !s.ignores("donations") && !s.donatesAlike(types, constants) {
		return nil
	}
	return types
}

// derive enters the constant w for the sizes of now, if it depends on sizes.
func (s *Structure) derive(w *ir.Value, constants Constants) bool {
	data := s.data[w.ID]
	if data == nil {
		return true
	}
	sized := *w
	sized.Type = s.types[w.ID]
	if at := s.origins[w.ID]; at.of != 0 && s.data[at.of] == nil {
		return constants.Derive(&sized, s.weights[at.of], at.offset, nil) == nil
	}
	return constants.Derive(&sized, nil, 0, func(dst, _ []byte) { copy(dst, data) }) == nil
}

// donatesAlike runs the pass Donate for these types and compares what it marks
// with the structure's marks.
func (s *Structure) donatesAlike(types ir.Types, constants Constants) bool {
	p := s.program.With(types)
	var marks []bool
	each := func(f func(*ir.Operand)) {
		p.Walk(func(_ *ir.Block, c *ir.Call) {
			for i := range c.Args {
				f(&c.Args[i])
			}
		})
	}
	each(func(o *ir.Operand) {
		marks = append(marks, o.Donate)
		o.Donate = false
	})
	ctx := &Context{Program: p, Constants: constants}
	if err := donate(ctx); err != nil {
		return false
	}
	same := len(ctx.Declined) == len(s.declined)
	for i := 0; same && i < len(s.declined); i++ {
		x, y := ctx.Declined[i], s.declined[i]
		x.Bytes, y.Bytes = 0, 0
		same = x == y
	}
	each(func(o *ir.Operand) {
		same = same && o.Donate == marks[0]
		marks = marks[1:]
	})
	return same
}

// fit takes the steps for parameters of these types and compares all outcomes
// and answers. It returns what is different, "" if nothing is.
func (s *Structure) fit(params []op.Type) (why string) {
	if len(params) != len(s.params) {
		return "number of inputs"
	}
	copy(s.types, s.template)
	for _, id := range s.varying {
		s.data[id] = nil
	}
	s.slab.reset()
	for i, id := range s.params {
		if !alike(params[i], s.template[id]) {
			return "rank"
		}
		s.types[id] = params[i]
	}
	left := s.allowance
	for _, st := range s.steps {
		if why := s.take(st, &left); why != "" {
			return why
		}
	}
	for _, cp := range s.copies {
		s.types[cp.id] = s.types[cp.of]
	}
	for _, g := range s.guards {
		if s.answer(g) != g.answer && !s.ignores(questionNames[g.question]) {
			return questionNames[g.question]
		}
	}
	for _, g := range s.constant {
		if !bytes.Equal(s.data[g.id], g.data) && !s.ignores("value") {
			return "value"
		}
	}
	for i := range s.views {
		g := &s.views[i]
		s.fill(&g.call)
		if arg, whole := wholeViewOf(&g.call.sig); (arg != g.arg || whole != g.whole) && !s.ignores("view") {
			return "view"
		}
	}
	return s.aliases.fit(s)
}

func (s *Structure) ignores(kind string) bool { return s.ignored != nil && s.ignored(kind) }

func (s *Structure) answer(g guard) int {
	a, b := fact{Type: s.types[g.a]}, fact{Type: s.types[g.b]}
	if g.question == spelledOut {
		a.data, _ = s.known(g.a)
	}
	return g.question.answer(a, b, g.x, g.y)
}

// alike reports whether two types differ in sizes alone, or in nothing.
func alike(a, b op.Type) bool {
	if a == b {
		return true
	}
	return a.DType == b.DType && (a.Shape == nil) == (b.Shape == nil) && a.Shape.Rank() == b.Shape.Rank() && a.IsStatic() == b.IsStatic()
}

// known returns the bytes of a constant.
func (s *Structure) known(id int) ([]byte, bool) {
	if data := s.data[id]; data != nil {
		return data, true
	}
	if data := s.small[id]; data != nil {
		return data, true
	}
	w := s.weights[id]
	if w == nil || s.varies[id] {
		return nil, false
	}
	data, ok := s.constants.Bytes(w)
	if ok && len(data) <= maxSmall {
		s.small[id] = append([]byte{}, data...)
	}
	return data, ok
}

// maxSmall is the size of constants up to which a structure has copies, so that
// it need not look them up.
const maxSmall = 64

// fill sets the types of a call to those of now.
func (s *Structure) fill(c *shadow) {
	for i, id := range c.args {
		c.sig.Args[i] = s.types[id]
	}
	for i, id := range c.results {
		c.sig.Results[i] = s.types[id]
	}
	for i, region := range c.regions {
		for j, id := range region {
			c.sig.Regions[i][j] = s.types[id]
		}
	}
	if c.sig.Known == nil {
		c.sig.Known = func(arg int) ([]byte, bool) {
			if arg >= len(c.args) || c.args[arg] == 0 {
				return nil, false
			}
			return s.known(c.args[arg])
		}
	}
}

// take is one step: what fold does with a call.
func (s *Structure) take(st *visit, left *allowance) (why string) {
	if st.fixed {
		if st.asks && left.spend(st.bytes, st.work) != (st.outcome == computed) && !s.ignores("allowance") {
			return "allowance"
		}
		return ""
	}
	s.fill(&st.shadow)
	own := st.sig.Results
	copy(own, st.before)
	err := st.sig.Def.Infer(&st.sig) // the number of operands and the attributes were checked when it was recorded
	found := st.sig.Results
	st.sig.Results = own
	if err != nil || len(found) != len(own) {
		return "a shape rule's error"
	}
	for i, id := range st.results {
		own[i] = found[i]
		if id == 0 {
			continue
		}
		if !alike(found[i], s.template[id]) {
			return "rank"
		}
		s.types[id] = found[i]
		if made := st.made[i]; made != 0 {
			s.types[made] = found[i]
		}
	}
	if st.constant {
		return s.fold(st, left)
	}
	return ""
}

// fold judges a call whose operands are constants, and evaluates it.
func (s *Structure) fold(st *visit, left *allowance) (why string) {
	c := st.call
	for i, id := range st.args {
		if id != 0 {
			data, _ := s.known(id)
			c.In[i] = op.Arg{Type: s.types[id], Layout: shape.RowMajor(s.types[id].Shape), Data: data}
		}
	}
	for i, id := range st.results {
		if id == 0 {
			continue
		}
		if _, err := s.types[id].Bytes(); err != nil {
			return "a size beyond all bounds"
		}
		c.Out[i] = op.Arg{Type: s.types[id], Layout: shape.RowMajor(s.types[id].Shape)}
	}
	if decided, _ := left.judge(c); decided != st.outcome && !s.ignores("folding") {
		return "folding"
	}
	switch st.outcome {
	case viewed:
		for i, id := range st.made {
			if id != 0 {
				arg, offset := c.Sig.ViewOf(i)
				s.share(id, st.args[arg], offset)
			}
		}
	case computed:
		for i, id := range st.made {
			if id != 0 {
				s.data[id] = s.slab.bytes(int(bytesOf(s.types[id])))
				c.Out[i].Data = s.data[id]
			}
		}
		if err := s.evaluate(st); err != nil {
			return "a constant's error"
		}
	}
	return ""
}

// evaluate computes a constant. The call is bound once, and refilled for other
// sizes.
func (s *Structure) evaluate(st *visit) (err error) {
	if st.task != nil {
		err = st.task.Refill()
	}
	if st.task == nil || errors.Is(err, compute.ErrRebind) {
		st.task, err = compute.Bind(st.call)
	}
	if err != nil {
		return err
	}
	t := st.task
	if len(s.room) < t.Scratch+63 {
		s.room = make([]byte, t.Scratch+63)
	}
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(s.room))) & 63)
	if err := t.Start(); err != nil {
		return err
	}
	for i := range t.Tiles {
		t.Tile(i, s.room[skip:][:t.Scratch])
	}
	return t.Finish()
}

// share makes a constant lie in the bytes of another one.
func (s *Structure) share(id, of, offset int) {
	data, _ := s.known(of)
	if s.data[id] = data[offset:][:bytesOf(s.types[id])]; s.data[id] == nil {
		s.data[id] = []byte{}
	}
	s.origins[id] = origin{of, offset}
	if at := s.origins[of]; at.of != 0 && s.data[of] != nil {
		s.origins[id] = origin{at.of, at.offset + offset}
	}
}

// slab is memory for the constants of one set of sizes.
type slab struct {
	words []uint64
	used  int
}

func (m *slab) reset() { m.used = 0 }

// bytes returns n zeroed bytes, aligned for any element; never nil.
func (m *slab) bytes(n int) []byte {
	need := n/8 + 1
	if m.used+need > len(m.words) {
		m.words, m.used = make([]uint64, max(2*len(m.words), need, 256)), 0
	}
	w := m.words[m.used:][:need]
	m.used += need
	clear(w)
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), n)
}

// Program returns the final program, which must not be changed.
func (s *Structure) Program() *ir.Program { return s.program }

// Declined and Copies return the reports of the passes. Their sizes are those of
// the first program.
func (s *Structure) Declined() []plan.Declined { return s.declined }

// Copies: see Declined.
func (s *Structure) Copies() []plan.Copy { return s.reported }

// Constants returns the table that the structure was made with: that of an
// instance lies on top of it.
func (s *Structure) Constants() Constants { return s.constants }

// Bytes returns about how much memory the structure takes.
func (s *Structure) Bytes() int64 {
	const perValue, perCall = 200, 500
	n := int64(len(s.template))*perValue + int64(len(s.steps)+len(s.aliases.calls)+len(s.views))*perCall + int64(len(s.guards))*64
	for _, id := range s.varying {
		n += 2 * bytesOf(s.template[id]) // where it was made first, and now
	}
	return n
}

// Guards returns the number of guards by kind, and of steps.
func (s *Structure) Guards() map[string]int {
	n := map[string]int{"step": len(s.steps), "value": len(s.constant), "view": len(s.views), "empty": len(s.aliases.empty)}
	for _, g := range s.guards {
		n[questionNames[g.question]]++
	}
	for _, c := range s.aliases.calls {
		n["alias"] += len(c.pairs)
	}
	return n
}
