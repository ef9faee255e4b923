package jinja

import (
	"strings"
	"time"
)

// scope has the variables of a block, and around it those of others.
type scope struct {
	vars   map[string]any
	parent *scope
}

func (s *scope) get(name string) any {
	for ; s != nil; s = s.parent {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return undefined{name + " is not defined"}
}

// signal says that the rest of a loop's body is left out.
type signal int

const (
	goOn signal = iota
	breaks
	continues
)

// renderer is a rendering under way.
type renderer struct {
	scope   *scope
	out     *strings.Builder
	now     time.Time
	line    int // of what is evaluated
	steps   int
	depth   int
	signal  signal
	written string // by the block whose filters are evaluated
}

// step counts what a rendering does.
func (r *renderer) step() {
	if r.steps++; r.steps > mostSteps {
		fail(r.line, "got more than %d steps", mostSteps)
	}
}

// size bounds lists, and counts their elements as steps.
func (r *renderer) size(n int) {
	if n > mostItems {
		fail(r.line, "got %d elements, want at most %d", n, mostItems)
	}
	r.steps += n
	r.step()
}

// fits bounds texts.
func (r *renderer) fits(n int) {
	if n > mostText {
		fail(r.line, "got a text of %d bytes, want at most %d", n, mostText)
	}
	r.steps += n / 64
	r.step()
}

func (r *renderer) write(text string) {
	r.fits(r.out.Len() + len(text))
	r.steps -= r.out.Len() / 64 // it was counted when it was written
	r.out.WriteString(text)
}

// inner runs f with a scope of its own.
func (r *renderer) inner(f func()) {
	was := r.scope
	r.scope = &scope{vars: map[string]any{}, parent: was}
	f()
	r.scope = was
}

// capture returns what f writes.
func (r *renderer) capture(f func()) string {
	was := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = was
	return text
}

func (r *renderer) statements(list []node) {
	for _, n := range list {
		r.step()
		if n.run(r); r.signal != goOn {
			return
		}
	}
}

func (n plain) run(r *renderer) { r.write(n.text) }

func (n output) run(r *renderer) {
	r.line = n.line
	r.write(r.text(n.e.eval(r)))
}

func (n breakNode) run(r *renderer) {
	r.signal = breaks
	if n.goOn {
		r.signal = continues
	}
}

func (n scopeNode) run(r *renderer) { r.inner(func() { r.statements(n.body) }) }

func (n ifNode) run(r *renderer) {
	for i, t := range n.tests {
		if truth(t.eval(r)) {
			r.statements(n.bodies[i])
			return
		}
	}
	r.statements(n.other)
}

// assign sets names to the parts of a value, or one to the value.
func (r *renderer) assign(targets []target, tuple bool, v any) {
	if !tuple {
		r.assignOne(targets[0], v)
		return
	}
	parts := r.items(v)
	if len(parts) != len(targets) {
		fail(r.line, "got %d values for %d names", len(parts), len(targets))
	}
	for i, t := range targets {
		r.assignOne(t, parts[i])
	}
}

func (r *renderer) assignOne(t target, v any) {
	if t.field == "" {
		r.scope.vars[t.name] = v
		return
	}
	ns, ok := r.scope.get(t.name).(*namespace)
	if !ok {
		fail(r.line, "got a value for %s.%s, want a namespace for that", t.name, t.field)
	}
	ns.fields.Set(t.field, v)
}

func (n setNode) run(r *renderer) {
	r.line = n.line
	r.assign(n.targets, n.tuple, n.value.eval(r))
}

func (n setBlock) run(r *renderer) {
	var v any = r.capture(func() { r.inner(func() { r.statements(n.body) }) })
	r.line = n.line
	if n.filter != nil {
		r.written = v.(string)
		v = n.filter.eval(r)
	}
	r.assignOne(n.to, v)
}

func (n filterNode) run(r *renderer) {
	r.written = r.capture(func() { r.inner(func() { r.statements(n.body) }) })
	r.write(r.text(n.filter.eval(r)))
}

func (n withNode) run(r *renderer) {
	values := make([]any, len(n.values))
	for i, v := range n.values {
		values[i] = v.eval(r)
	}
	r.inner(func() {
		for i, name := range n.names {
			r.scope.vars[name] = values[i]
		}
		r.statements(n.body)
	})
}

// loop is the value of the name loop.
type loop struct {
	items   []any
	i       int
	depth   int
	changed any // what changed() was last called with
	again   func(over any) string
}

func (l *loop) field(name string) any {
	n := int64(len(l.items))
	at := func(i int, why string) any {
		if i < 0 || i >= len(l.items) {
			return undefined{why}
		}
		return l.items[i]
	}
	switch i := int64(l.i); name {
	case "index":
		return i + 1
	case "index0":
		return i
	case "revindex":
		return n - i
	case "revindex0":
		return n - i - 1
	case "first":
		return i == 0
	case "last":
		return i == n-1
	case "length":
		return n
	case "depth":
		return int64(l.depth)
	case "depth0":
		return int64(l.depth - 1)
	case "previtem":
		return at(l.i-1, "there is no previous item")
	case "nextitem":
		return at(l.i+1, "there is no next item")
	case "cycle":
		return &function{"cycle", func(r *renderer, a *arguments) any {
			if len(a.list) == 0 {
				fail(r.line, "cycle: got no values")
			}
			return a.list[l.i%len(a.list)]
		}}
	case "changed":
		return &function{"changed", func(r *renderer, a *arguments) any {
			now := &List{Items: a.list}
			same := l.changed != nil && r.equal(l.changed, now)
			l.changed = now
			return !same
		}}
	}
	return undefined{"loop has no " + name}
}

func (n forNode) run(r *renderer) {
	r.line = n.line
	n.loop(r, n.over.eval(r), 1)
}

// loop runs the body for every element.
func (n forNode) loop(r *renderer, over any, depth int) {
	targets := make([]target, len(n.targets))
	for i, name := range n.targets {
		targets[i].name = name
	}
	list := r.items(over)
	r.size(len(list))
	if n.test != nil {
		var kept []any
		for _, v := range list {
			r.inner(func() {
				r.assign(targets, n.tuple, v)
				if truth(n.test.eval(r)) {
					kept = append(kept, v)
				}
			})
		}
		list = kept
	}
	l := &loop{items: list, depth: depth}
	if n.recursive {
		l.again = func(over any) string {
			defer r.deeper()()
			return r.capture(func() { n.loop(r, over, depth+1) })
		}
	}
	for i, v := range list {
		l.i = i
		r.step()
		r.inner(func() {
			r.scope.vars["loop"] = l
			r.assign(targets, n.tuple, v)
			r.statements(n.body)
		})
		stop := r.signal == breaks
		r.signal = goOn
		if stop {
			return
		}
	}
	if len(list) == 0 {
		r.inner(func() { r.statements(n.other) })
	}
}

// deeper bounds how deep macros call each other.
func (r *renderer) deeper() func() {
	if r.depth++; r.depth > mostDepth {
		fail(r.line, "got macros that call each other more than %d deep", mostDepth)
	}
	return func() { r.depth-- }
}

// function makes a macro one that can be called from where it is defined.
func (n macroNode) function(r *renderer) *function {
	where := r.scope
	return &function{n.name, func(r *renderer, a *arguments) any {
		defer r.deeper()()
		was, line := r.scope, r.line
		r.scope = &scope{vars: map[string]any{}, parent: where}
		defer func() { r.scope, r.line = was, line }()
		n.bind(r, a)
		return r.capture(func() { r.statements(n.body) })
	}}
}

// bind sets the parameters of a macro.
func (n macroNode) bind(r *renderer, a *arguments) {
	vars := r.scope.vars
	for i, name := range n.params {
		if i < len(a.list) {
			vars[name] = a.list[i]
			if _, twice := a.named.Get(name); twice {
				fail(r.line, "%s: got the parameter %s twice", n.name, name)
			}
			continue
		}
		if v, ok := a.named.Get(name); ok {
			vars[name] = v
			continue
		}
		vars[name] = undefined{"parameter " + name + " was not given"}
		if d := i - len(n.params) + len(n.defaults); d >= 0 {
			vars[name] = n.defaults[d].eval(r)
		}
	}
	more := &List{tuple: true}
	if len(a.list) > len(n.params) {
		more.Items = a.list[len(n.params):]
	}
	others := NewMap()
	for _, k := range a.named.keys {
		known := k == "caller"
		for _, name := range n.params {
			known = known || k == name
		}
		if !known {
			v, _ := a.named.Get(k)
			others.Set(k, v)
		}
	}
	vars["varargs"], vars["kwargs"] = more, others
	if caller, ok := a.named.Get("caller"); ok {
		vars["caller"] = caller
	}
}

func (n macroNode) run(r *renderer) { r.scope.vars[n.name] = n.function(r) }

func (n callNode) run(r *renderer) {
	r.line = n.line
	f := n.call.f.eval(r)
	a := r.arguments(n.call.args)
	a.named.Set("caller", n.macro.function(r))
	r.write(r.text(r.invoke(f, a)))
}
