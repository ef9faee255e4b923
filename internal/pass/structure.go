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

// Structure is a final program for all sizes, and values of inputs that decide
// sizes, at which the passes would make the
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

	steps     []step
	allowance allowance
	guards    []guard
	constant  []valueGuard
	views     []viewGuard
	aliases   aliases
	copies    []copied
	deciding  []int // inputs whose values are constants of the program

	leastMemory, fixed bool // of the context
	declined           []plan.Declined
	reported           []plan.Copy
	initial            []op.Type // by ID: before the first step
	firstParams        []op.Type // of the first program
	weights            []*ir.Value
	origins            []origin // by ID: where a constant lies that shares bytes
	varying            []int    // constants that depend on sizes
	varies             []bool   // by ID: whether it is one of them
	small              [][]byte // by ID: copies of small constants that do not, which steps read
	values             []int    // of the program

	types   []op.Type        // by ID: for the sizes of the last Instance
	data    [][]byte         // by ID: of varying constants, as far as steps have been taken
	stored  [][]byte         // by ID: those of them that have bytes of their own, also between two instances
	stamps  []int            // by ID: counts the changes of their bytes
	value   func(int) []byte // of an input
	asked   bool             // a rule or a kernel asked for the value of an operand
	slab    slab
	room    []byte // scratch of kernels
	changes changes

	last []op.Type // of the parameters of the last instance
	why  string    // see Refusal

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
		steps: r.steps, allowance: r.allowance, guards: r.guards, constant: r.values, views: r.views, copies: r.copies, deciding: r.deciding,
		leastMemory: c.LeastMemory, fixed: c.Fixed, declined: c.Declined, reported: c.Copies,
		initial: make([]op.Type, n), weights: make([]*ir.Value, n), varies: make([]bool, n), small: make([][]byte, n), origins: make([]origin, n), types: make([]op.Type, n), data: make([][]byte, n),
		stored: make([][]byte, n), stamps: make([]int, n)}
	met := s.complete(c)
	// The steps are taken once for the present sizes: they must find the
	// program as it is.
	if why := s.fit(s.firstParams, r.firstValue); why != "" {
		return nil, "the steps do not repeat: " + why
	}
	for _, v := range met {
		if s.types[v.ID] != v.Type {
			return nil, "the steps do not repeat: types"
		}
	}
	s.aliases = s.aliasesOf()
	s.changes = s.changesOf()
	s.last = slices.Clone(s.firstParams)
	return s, ""
}

// complete fills the tables by ID, and returns the values whose types steps
// find.
func (s *Structure) complete(c *Context) (met []*ir.Value) {
	copy(s.initial, c.recorder.initial)
	for v := range c.varying {
		s.varying = append(s.varying, v.ID)
		s.varies[v.ID] = true
	}
	slices.Sort(s.varying)
	note := func(v *ir.Value) {
		if v == nil {
			return
		}
		met = append(met, v)
		if v.Kind == ir.Weight {
			s.weights[v.ID] = v
			if !s.varies[v.ID] {
				s.initial[v.ID] = v.Type
			}
		}
	}
	add := func(list []*ir.Value) {
		for _, v := range list {
			if v != nil {
				note(v)
				s.values = append(s.values, v.ID)
			}
		}
	}
	for _, v := range c.recorder.met {
		note(v)
	}
	for _, v := range c.Program.Body.Params {
		s.firstParams = append(s.firstParams, v.Type)
	}
	add(c.Program.Body.Params)
	add(c.Program.Weights)
	c.Program.Walk(func(_ *ir.Block, call *ir.Call) {
		for _, a := range call.Args {
			note(a.Value)
		}
		add(call.Results)
		for _, region := range call.Regions {
			add(region.Params)
		}
	})
	return met
}

// Types returns the types of the program's values, by ID, for parameters of
// these static types, which fit the model's, and enters the constants that
// depend on them in the table. value returns the bytes of an input; it may be
// nil where no value is known. Types returns nil where the passes would, or
// might, make another program.
func (s *Structure) Types(params []op.Type, value func(input int) []byte, constants Constants) ir.Types {
	if s.why = s.fit(params, value); s.why != "" {
		if len(s.deciding) > 0 && slices.Equal(params, s.last) {
			s.why = "value of an input: " + s.why
		}
		return nil
	}
	s.last = append(s.last[:0], params...)
	types := make(ir.Types, len(s.types))
	for _, id := range s.values {
		types[id] = s.types[id]
	}
	if !s.derive(constants) {
		s.why = "value"
		return nil
	}
	if s.aliases.ranges.again && !s.ignores("donations") && !s.donatesAlike(types, constants) {
		s.why = "donations"
		return nil
	}
	return types
}

// Refusal returns the kind of guard because of which Types has just returned
// nil. It begins with "value of an input: " where the parameters had the types
// of the instance before, and other values.
func (s *Structure) Refusal() string { return s.why }

// derive enters the constants that depend on sizes, for the sizes of now.
func (s *Structure) derive(constants Constants) bool {
	var sized ir.Value
	var data []byte
	fill := func(dst, _ []byte) { copy(dst, data) }
	for _, w := range s.program.Weights {
		if data = s.data[w.ID]; data == nil {
			continue
		}
		sized = *w
		sized.Type = s.types[w.ID]
		var err error
		if at := s.origins[w.ID]; at.of != 0 && s.data[at.of] == nil {
			err = constants.Derive(&sized, s.weights[at.of], at.offset, nil)
		} else {
			err = constants.Derive(&sized, nil, 0, fill)
		}
		if err != nil {
			return false
		}
	}
	return true
}

// donatesAlike runs the pass Donate for these types and compares its marks with
// the structure's.
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
	ctx := &Context{Program: p, Constants: constants, LeastMemory: s.leastMemory, Fixed: s.fixed}
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

// fitAll takes the steps for parameters of these types and compares all
// outcomes and answers. It returns the difference, "" if there is none.
func (s *Structure) fitAll(params []op.Type, value func(int) []byte) (why string) {
	if len(params) != len(s.params) {
		return "number of inputs"
	}
	copy(s.types, s.initial)
	for _, id := range s.varying {
		s.data[id] = nil
	}
	s.slab.reset()
	for i, id := range s.params {
		if !alike(params[i], s.firstParams[i]) {
			return "rank"
		}
		s.types[id] = params[i]
	}
	s.value = value
	defer func() { s.value = nil }()
	left, guards, constant := s.allowance, s.guards, s.constant
	for at, st := range s.steps {
		// Types change while fold runs: a question is answered where it was
		// asked.
		if len(guards) > 0 && guards[0].at <= at || len(constant) > 0 && constant[0].at <= at {
			if guards, constant, why = s.hold(guards, constant, at); why != "" {
				return why
			}
		}
		if why := st.take(s, &left); why != "" {
			return why
		}
	}
	for _, cp := range s.copies {
		s.types[cp.id] = s.types[cp.of]
	}
	if _, _, why := s.hold(guards, constant, len(s.steps)); why != "" {
		return why
	}
	if why := s.holdViews(nil); why != "" {
		return why
	}
	return s.aliases.fit(s, nil)
}

// holdViews compares what wholeView said of calls: of those that changes
// concern, unless it is nil.
func (s *Structure) holdViews(c *changes) (why string) {
	for i := range s.views {
		g := &s.views[i]
		if c != nil && g.call.known && !c.concerns(&g.call) || s.fill(&g.call) {
			continue
		}
		arg, whole := wholeViewOf(&g.call.sig)
		if g.call.known = arg == g.arg && whole == g.whole; !g.call.known && !s.ignores("view") {
			return "view"
		}
	}
	return ""
}

// hold compares the answers to the questions that were asked after so many
// steps, and the constants that were read, and returns the rest of the lists.
func (s *Structure) hold(guards []guard, constant []valueGuard, at int) (_ []guard, _ []valueGuard, why string) {
	for ; len(guards) > 0 && guards[0].at <= at; guards = guards[1:] {
		if g := guards[0]; s.answer(g) != g.answer && !s.ignores(questionNames[g.question]) {
			return nil, nil, questionNames[g.question]
		}
	}
	for ; len(constant) > 0 && constant[0].at <= at; constant = constant[1:] {
		if g := &constant[0]; !s.isConstant(g) && !s.ignores("value") {
			return nil, nil, "value"
		}
	}
	return guards, constant, ""
}

// isConstant reports whether a constant has the bytes that a pass read.
func (s *Structure) isConstant(g *valueGuard) bool { return bytes.Equal(s.data[g.id], g.data) }

func (s *Structure) ignores(kind string) bool { return s.ignored != nil && s.ignored(kind) }

func (s *Structure) answer(g guard) int {
	a, b := fact{Type: s.types[g.a]}, fact{Type: s.types[g.b]}
	if g.question == spelledOut {
		a.data, _ = s.known(g.a)
	}
	return g.question.answer(a, b, g.x, g.y)
}

// alike reports whether two types differ in sizes alone, or in nothing: both
// know the same sizes.
func alike(a, b op.Type) bool {
	if a == b {
		return true
	}
	if a.DType != b.DType || (a.Shape == nil) != (b.Shape == nil) || a.Shape.Rank() != b.Shape.Rank() || a.IsStatic() != b.IsStatic() {
		return false
	}
	if a.IsStatic() || a.Shape == nil {
		return true
	}
	for axis := range a.Shape.Rank() {
		if (a.Shape.Size(axis) < 0) != (b.Shape.Size(axis) < 0) {
			return false
		}
	}
	return true
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

// knownValue is known for a value of a copy of the program.
func (s *Structure) knownValue(v *ir.Value) ([]byte, bool) {
	if v == nil || v.Kind != ir.Weight {
		return nil, false
	}
	return s.known(v.ID)
}

// maxSmall is the size of constants up to which a structure has copies, so that
// it need not look them up.
const maxSmall = 64

// fill sets the types of a call to those of now. It reports whether these and
// the operands' bytes are those for which an answer is known, and leaves the
// signature as it is then.
func (s *Structure) fill(c *shadow) (known bool) {
	known = c.known
	for i, id := range c.args {
		known = known && c.sig.Args[i] == s.types[id] && c.stamps[i] == s.stamps[id]
		c.sig.Args[i], c.stamps[i] = s.types[id], s.stamps[id]
	}
	for i, id := range c.results {
		known = known && c.before[i] == s.types[id]
		c.before[i] = s.types[id]
	}
	for i, region := range c.regions {
		for j, id := range region {
			known = known && c.sig.Regions[i][j] == s.types[id]
			c.sig.Regions[i][j] = s.types[id]
		}
	}
	if known {
		return true
	}
	c.known = false
	copy(c.sig.Results, c.before)
	if c.sig.Known == nil {
		c.sig.Known = func(arg int) ([]byte, bool) {
			s.asked = true
			if arg >= len(c.args) || c.args[arg] == 0 {
				return nil, false
			}
			return s.known(c.args[arg])
		}
	}
	return false
}

// fold judges a call whose operands are constants, and evaluates it. It says
// whether the call fails, and what else is different.
func (s *Structure) fold(st *visit, left *allowance) (failed bool, why string) {
	c := st.call
	for i, id := range st.args {
		if id != 0 {
			st.resized = setType(&c.In[i], s.types[id]) || st.resized
			c.In[i].Data, _ = s.known(id)
		}
	}
	for i, id := range st.results {
		if id == 0 {
			continue
		}
		if _, err := s.types[id].Bytes(); err != nil {
			return true, ""
		}
		st.resized = setType(&c.Out[i], s.types[id]) || st.resized
	}
	before := *left
	decided, asked := left.judge(c)
	if decided != st.outcome && !s.ignores("folding") {
		return false, "folding"
	}
	st.asks, st.filled = asked, left.maxFill != before.maxFill
	if st.bytes, st.work = before.bytes-left.bytes, before.work-left.work; asked && decided == kept {
		st.bytes, st.work, _ = needs(c)
	}
	switch st.outcome {
	case viewed:
		for i, id := range st.made {
			if id != 0 {
				arg, offset := c.Sig.ViewOf(i)
				s.share(id, st.args[arg], offset)
				s.stamps[id]++
			}
		}
	case computed:
		for i, id := range st.results {
			if id != 0 {
				c.Out[i].Data = s.slab.bytes(int(bytesOf(s.types[id])))
			}
		}
		if s.evaluate(st) != nil {
			return true, ""
		}
		for i, id := range st.made {
			if id != 0 {
				s.store(id, c.Out[i].Data)
			}
		}
	}
	return false, ""
}

// setType sets the type of an operand or a result, and reports whether it is
// another one.
func setType(a *op.Arg, t op.Type) bool {
	if a.Type == t {
		return false
	}
	a.Type, a.Layout = t, shape.RowMajor(t.Shape)
	return true
}

// refold is fold for a call of which the operands are those of before.
func (s *Structure) refold(st *visit, left *allowance) (why string) {
	if st.asks && left.spend(st.bytes, st.work) != (st.outcome == computed) && !s.ignores("folding") {
		return "folding"
	}
	for i, id := range st.made {
		switch {
		case id == 0:
		case st.outcome == viewed:
			arg, offset := st.call.Sig.ViewOf(i)
			s.share(id, st.args[arg], offset)
		case st.outcome == computed:
			s.data[id] = s.stored[id]
		}
	}
	return ""
}

// store sets the bytes of a constant, which are copied.
func (s *Structure) store(id int, data []byte) {
	if own := s.stored[id]; own == nil || !bytes.Equal(own, data) {
		if cap(own) < len(data) || own == nil {
			own = alignedBytes(make([]uint64, len(data)/8+1))
		}
		s.stored[id] = append(own[:0], data...)
		s.stamps[id]++
	}
	s.data[id] = s.stored[id]
}

// evaluate computes a constant. The call is bound once, and refilled for other
// sizes, and for other values if it asked for any when it was refilled last.
func (s *Structure) evaluate(st *visit) (err error) {
	if st.task == nil || st.resized || st.asked {
		s.asked = false
		if st.task != nil {
			err = st.task.Refill()
		}
		if st.task == nil || errors.Is(err, compute.ErrRebind) {
			st.task, err = compute.Bind(st.call)
		}
		if err != nil {
			st.task = nil
			return err
		}
		st.resized, st.asked = false, s.asked
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
	return alignedBytes(w)[:n]
}

// alignedBytes returns the bytes of words.
func alignedBytes(w []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 8*len(w))
}

// Program returns the final program, which must not be changed.
func (s *Structure) Program() *ir.Program { return s.program }

// Declined and Copies return the reports of the passes. Their sizes are those
// of the first program.
func (s *Structure) Declined() []plan.Declined { return s.declined }

// Copies: see Declined.
func (s *Structure) Copies() []plan.Copy { return s.reported }

// Constants returns the table that the structure was made with: that of an
// instance lies on top of it.
func (s *Structure) Constants() Constants { return s.constants }

// Bytes returns about how much memory the structure takes.
func (s *Structure) Bytes() int64 {
	const perValue, perCall = 200, 500
	n := int64(len(s.types))*perValue + int64(len(s.steps)+len(s.aliases.calls)+len(s.views))*perCall + int64(len(s.guards))*64
	for _, st := range s.steps { // copies of parts of the program
		switch st := st.(type) {
		case *loopTypes:
			n += int64(len(st.values)) * (perValue + perCall)
		case *possibles:
			n += int64(st.program.NumIDs()) * (perValue + perCall)
		}
	}
	for _, id := range s.varying {
		if w := s.weights[id]; w != nil {
			n += 2 * bytesOf(w.Type) // where it was made first, and now
		}
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
