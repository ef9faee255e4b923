package exec

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

func u8(n int) op.Type { return op.Type{DType: dtype.U8, Shape: shape.MustOf(n)} }

// valuesOf makes n values that count their buffers in one place. At the end of
// the test the count must be 0 once all are dropped.
func valuesOf(t *testing.T, n int) (list []*dynamicValue, buffers *int) {
	t.Helper()
	memorytest.Check(t)
	buffers = new(int)
	for range n {
		d := new(dynamicValue)
		d.init(buffers, memory.Activations)
		list = append(list, d)
	}
	t.Cleanup(func() {
		for _, d := range list {
			d.drop()
		}
		if *buffers != 0 {
			t.Errorf("got %d buffers after all values were dropped, want 0", *buffers)
		}
	})
	return list, buffers
}

// filled sets d to a value of n bytes: first, first+1 and so on.
func filled(t *testing.T, d *dynamicValue, n int, first byte) {
	t.Helper()
	if err := d.set(u8(n)); err != nil {
		t.Fatal(err)
	}
	for i := range d.bytes() {
		d.bytes()[i] = first + byte(i)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestDynamicValueDropsWhatWasThere sets a value that already has a buffer, in
// each of the possible ways.
func TestDynamicValueDropsWhatWasThere(t *testing.T) {
	arena := []byte{7, 8, 9}
	for name, give := range map[string]func(d, other *dynamicValue) error{
		"set":                func(d, _ *dynamicValue) error { return d.set(u8(3)) },
		"set to no bytes":    func(d, _ *dynamicValue) error { return d.set(u8(0)) },
		"place":              func(d, _ *dynamicValue) error { d.place(u8(3), arena); return nil },
		"copy":               func(d, _ *dynamicValue) error { return d.copy(u8(3), arena) },
		"view":               func(d, other *dynamicValue) error { return d.view(other, u8(3), 1) },
		"view of no bytes":   func(d, other *dynamicValue) error { return d.view(other, u8(0), 1) },
		"share":              func(d, other *dynamicValue) error { return d.share(other) },
		"share of the arena": func(d, other *dynamicValue) error { other.place(u8(3), arena); return d.share(other) },
		"move":               func(d, other *dynamicValue) error { return d.move(other) },
		"grow":               func(d, _ *dynamicValue) error { return d.grow(u8(200), 3) },
		"extend":             func(d, other *dynamicValue) error { return d.extend(other, u8(200)) },
		"extend to no bytes": func(d, _ *dynamicValue) error { return d.extend(new(dynamicValue), u8(0)) },
		"cut":                func(d, _ *dynamicValue) error { return d.cut(u8(3)) },
		"cut to no bytes":    func(d, _ *dynamicValue) error { return d.cut(u8(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			list, buffers := valuesOf(t, 2)
			filled(t, list[0], 100, 0)
			filled(t, list[1], 10, 50)
			before := list[0].base
			must(t, give(list[0], list[1]))
			if list[0].base == before || before.Holders() != 0 {
				t.Errorf("got %d holders of the buffer that was there, want none", before.Holders())
			}
			want := 0
			for _, d := range list {
				if d.hasBuffer() {
					want++
				}
			}
			if *buffers != want {
				t.Errorf("got %d buffers counted, want %d", *buffers, want)
			}
		})
	}
}

func TestDynamicValueKeepsOffsets(t *testing.T) {
	list, _ := valuesOf(t, 4)
	filled(t, list[0], 16, 0)
	must(t, list[1].view(list[0], u8(8), 4))
	must(t, list[2].share(list[1]))
	must(t, list[1].view(list[1], u8(2), 3)) // of itself
	list[0].drop()
	must(t, list[3].move(list[2]))
	if got := list[1].bytes(); !slices.Equal(got, []byte{7, 8}) {
		t.Errorf("a view of a view: got % x, want 07 08", got)
	}
	if got := list[3].bytes(); !slices.Equal(got, []byte{4, 5, 6, 7, 8, 9, 10, 11}) {
		t.Errorf("shared, then moved: got % x, want bytes 4 to 11", got)
	}
	must(t, list[3].share(list[3]))
	must(t, list[3].move(list[3]))
	for i, want := range map[int]byte{1: 7, 3: 4} { // with their first byte
		n := len(list[i].bytes())
		must(t, list[i].own())
		buf, typ := list[i].take()
		if typ != u8(n) || buf.Len() != n || buf.Holders() != 1 || buf.Bytes()[0] != want {
			t.Errorf("taken: got %s, %d bytes, %d holders, % x", typ, buf.Len(), buf.Holders(), buf.Bytes())
		}
		must(t, buf.Release())
		if buf, typ := list[i].take(); buf != nil || !typ.IsZero() {
			t.Errorf("taken twice: got %s, want nothing", typ)
		}
	}
}

// A value that is alone in its buffer and fills it is taken as it is.
func TestDynamicValueOwnsWithoutACopy(t *testing.T) {
	list, _ := valuesOf(t, 2)
	filled(t, list[0], 16, 0)
	buf := list[0].base
	must(t, list[0].own())
	if list[0].base != buf {
		t.Error("alone: got another buffer, want the same")
	}
	must(t, list[1].share(list[0]))
	must(t, list[1].own())
	must(t, list[0].own())
	if list[0].base != buf || list[1].base == buf {
		t.Error("shared: want the first to own to get a copy, and the other the buffer")
	}
}

// An allocation that fails leaves no value and no buffer.
func TestDynamicValueFailsEmpty(t *testing.T) {
	list, buffers := valuesOf(t, 2)
	filled(t, list[0], 64, 0)
	must(t, list[1].view(list[0], u8(8), 8))
	list[0].drop()
	defer memory.SetLimit(memory.SetLimit(1))
	for _, c := range []struct {
		name string
		give func(d *dynamicValue) error
	}{
		{"own", func(d *dynamicValue) error { return d.own() }},
		{"set", func(d *dynamicValue) error { return d.set(u8(3)) }},
		{"copy", func(d *dynamicValue) error { return d.copy(u8(2), []byte{1, 2}) }},
		{"grow", func(d *dynamicValue) error { return d.grow(u8(70), 0) }},
	} {
		if err := c.give(list[1]); !errors.Is(err, memory.ErrLimit) {
			t.Fatalf("%s: got %v, want ErrLimit", c.name, err)
		}
		if list[1].hasBuffer() || len(list[1].bytes()) != 0 || *buffers != 0 {
			t.Fatalf("%s: got a value and %d buffers, want none", c.name, *buffers)
		}
	}
}

// A buffer that is left when a run ends is counted, and a panic in the
// invariant build.
func TestLeftoverIsSeen(t *testing.T) {
	memorytest.Check(t)
	r := &Runner{exe: &Executable{dynamic: []dynamicInfo{{isResult: true}, {}}}, dynamic: make([]dynamicValue, 2)}
	for i := range r.dynamic {
		r.dynamic[i].init(&r.buffers, memory.Activations)
		filled(t, &r.dynamic[i], 8, 0)
	}
	defer leftover.Store(leftover.Load())
	before := Leftover()
	func() {
		defer func() {
			if got := recover(); (got != nil) != invariant.Enabled {
				t.Errorf("got panic %v, want one in the invariant build", got)
			}
		}()
		r.endRun(true)
	}()
	if got := Leftover() - before; got != 1 {
		t.Errorf("got %d left over, want 1", got)
	}
	if !r.dynamic[0].hasBuffer() || r.dynamic[1].hasBuffer() {
		t.Error("want the output to stay and the other value to be dropped")
	}
	before = Leftover()
	r.endRun(false)
	if r.buffers != 0 || Leftover() != before {
		t.Errorf("after a failure: got %d buffers and %d left over, want 0: a failure ends anywhere", r.buffers, Leftover()-before)
	}
}

// A value grows in its buffer as long as that has room and no other holder, and
// the shorter value stays as it is.
func TestDynamicValueExtends(t *testing.T) {
	list, buffers := valuesOf(t, 4)
	a, b, c, d := list[0], list[1], list[2], list[3]
	filled(t, a, 4, 1)
	must(t, b.extend(a, u8(6))) // a has no room
	if &b.bytes()[0] == &a.bytes()[0] || *buffers != 2 {
		t.Errorf("got the bytes of a value without room, or %d buffers, want 2", *buffers)
	}
	copy(b.bytes()[4:], []byte{5, 6})
	must(t, c.extend(b, u8(12)))
	if &c.bytes()[0] != &b.bytes()[0] {
		t.Error("got other bytes than those of a value with room")
	}
	copy(c.bytes()[6:], []byte{7, 8, 9, 10, 11, 12})
	must(t, d.extend(b, u8(7))) // its buffer has another holder now
	d.bytes()[6] = 99
	if want := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; !slices.Equal(c.bytes(), want) || !slices.Equal(b.bytes(), want[:6]) || !slices.Equal(d.bytes()[:6], want[:6]) {
		t.Errorf("got %v, %v and %v, want the beginnings of %v", b.bytes(), c.bytes(), d.bytes(), want)
	}
	b.drop()
	must(t, b.extend(c, u8(13))) // full
	if &b.bytes()[0] == &c.bytes()[0] {
		t.Error("got the bytes of a full buffer")
	}
}

// TestDynamicValueAlone checks that the package passes values on by their
// methods: the fields are named in one file, values stand in the runner's list
// alone, and buffers are retained nowhere else.
func TestDynamicValueAlone(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			fault := ""
			switch n := n.(type) {
			case *ast.SelectorExpr:
				switch n.Sel.Name {
				case "span", "base", "is":
					fault = "the field " + n.Sel.Name + " of a dynamicValue"
				case "Retain":
					fault = "Retain"
				}
			case *ast.ValueSpec:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "dynamicValue" {
					fault = "a variable of type dynamicValue"
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "dynamicValue" {
					fault = "a literal of type dynamicValue"
				}
			}
			if fault == "" {
				return true
			}
			if file == "dynamicvalue.go" {
				seen++
				return true
			}
			t.Errorf("%s: got %s, want that in dynamicvalue.go only", set.Position(n.Pos()), fault)
			return true
		})
	}
	if seen == 0 {
		t.Error("got none of what dynamicvalue.go alone may do: the names in this test are out of date")
	}
}
