package shape

import (
	"hash/maphash"
	"slices"
	"strings"
)

var (
	global     interner // not a pointer: its address is known at link time and costs no load
	symbolSeed = maphash.MakeSeed()
)

func init() {
	global.open()
	watch(global.sweep)
}

// word returns the dimension as a word of a path: a size is its own word, other
// dimensions have negative words. Different symbols may have the same word.
func (d Dim) word() int {
	switch d.kind {
	case sized:
		return d.size
	case symbolic:
		return -2 - int(maphash.String(symbolSeed, d.symbol)>>2)
	}
	return -1
}

// path returns the words of the path to s.
func (s *Shape) path() []int {
	if s.dims == nil {
		return s.sizes
	}
	words := make([]int, 0, len(*s.dims))
	for _, d := range *s.dims {
		words = append(words, d.word())
	}
	return words
}

// static returns the shape with the sizes. If it does not exist, static creates
// it or, without create, returns nil. Nearly all lookups find an exact key in
// its home block of the strong table. This case is written out here: up to rank
// 4 it makes no call and takes few branches, which are nearly always predicted,
// so the processor starts the next lookups while one waits for memory.
func (in *interner) static(sizes []int, create bool) (*Shape, error) {
	t := &in.shapes
	var packed, all int
	switch len(sizes) {
	case 2:
		packed, all = pack2((*[2]int)(sizes))
	case 3:
		packed, all = pack3((*[3]int)(sizes))
	case 4:
		packed, all = pack4((*[4]int)(sizes))
	default:
		if len(sizes) > maxPacked {
			return in.hashed(sizes, create)
		}
		packed, all = t.keys.pack(sizes)
	}
	if !t.keys.fit(all, len(sizes)) {
		return in.hashed(sizes, create)
	}
	key := t.keys.scatter(packed)
	n := &t.roots[len(sizes)]
	for range n.depth.Load() {
		children := n.children.Load()
		n = children.slots[classOf(sizes[n.level], t.spread)&children.mask]
	}
	if strong := n.strong.Load(); strong != nil {
		b := &strong.blocks[home(key, len(strong.blocks))]
		if slot := slotOf(key, &b.keys); b.keys[slot].Load() == key {
			return b.values[slot], nil
		}
		if s := strong.find(key); s != nil {
			return s, nil
		}
	}
	if s, _ := n.weak.Load().at(key, 0); s != nil {
		return s, nil
	}
	return in.missed(sizes, key, create)
}

// hashed is static for sizes that have no exact key.
func (in *interner) hashed(sizes []int, create bool) (*Shape, error) {
	n, key := in.shapes.find(sizes), in.shapes.keys.hash(sizes)
	if s := n.strong.Load().find(key); s != nil && slices.Equal(s.sizes, sizes) {
		return s, nil
	}
	if s := n.search(key, isStatic(sizes)); s != nil {
		return s, nil
	}
	return in.missed(sizes, key, create)
}

// missed is static for a shape that was not found; the shape may have been
// moved meanwhile.
func (in *interner) missed(sizes []int, key uint64, create bool) (*Shape, error) {
	if !create {
		return in.shapes.lookup(sizes, key, isStatic(sizes)), nil
	}
	elements, err := count(sizes)
	if err != nil {
		return nil, err
	}
	return in.shapes.intern(sizes, isStatic(sizes), func() *Shape { return makeStatic(sizes, elements) })
}

// isStatic reports whether s has the sizes; other shapes may have the same key.
func isStatic(sizes []int) func(*Shape) bool {
	return func(s *Shape) bool { return s.dims == nil && slices.Equal(s.sizes, sizes) }
}

// symbolic returns the shape with the dimensions, of which at least one has no
// size.
func (in *interner) symbolic(dims []Dim) (*Shape, error) {
	var buf [maxLevels]int
	words := buf[:0]
	for _, d := range dims {
		words = append(words, d.word())
	}
	t := &in.shapes
	key := t.keys.of(words)
	same := func(s *Shape) bool { return s.dims != nil && slices.Equal(*s.dims, dims) }
	if s := t.find(words).search(key, same); s != nil {
		return s, nil
	}
	return t.intern(words, same, func() *Shape {
		own := slices.Clone(dims)
		for i := range own {
			own[i].symbol = strings.Clone(own[i].symbol) // the symbol may be a part of the contents of a file
		}
		return &Shape{dims: &own, elements: -1}
	})
}

// layoutPath returns the words of the path to l: one for the shape, then the
// strides and the flags.
func (in *interner) layoutPath(l *Layout) []int {
	return in.layoutWords(nil, l.shape, l.strides, l.flags)
}

func (in *interner) layoutWords(words []int, s *Shape, strides []int, flags Flags) []int {
	words = append(words, int(in.shapes.keys.of(s.sizes)))
	words = append(words, strides...)
	return append(words, int(flags))
}

// layout returns the interned layout that is not row-major.
func (in *interner) layout(s *Shape, strides []int, flags Flags, lo, hi int) (*Layout, error) {
	var buf [maxLevels]int
	words := in.layoutWords(buf[:0], s, strides, flags)
	same := func(l *Layout) bool {
		return l.shape == s && l.flags == flags && slices.Equal(l.strides, strides)
	}
	t := &in.layouts
	if l := t.find(words).search(t.keys.of(words), same); l != nil {
		return l, nil
	}
	return t.intern(words, same, func() *Layout {
		return &Layout{shape: s, strides: slices.Clone(strides), flags: flags,
			contiguous: isContiguous(s, strides), lo: lo, hi: hi}
	})
}
