package shape

import (
	"hash/maphash"
	"slices"
	"strings"
)

var (
	global     interner // a value, since its address costs no load
	symbolSeed = maphash.MakeSeed()
)

func init() {
	global.open()
	watch(global.sweep)
}

// word returns the dimension as a word of a path: sizes are their own words,
// others are negative. Different symbols may share a word.
func (d Dim) word() int {
	switch d.kind {
	case sized:
		return d.size
	case symbolic:
		return -2 - int(maphash.String(symbolSeed, d.symbol)>>2)
	}
	return -1
}

// path returns the words that lead to s.
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

// static returns the one shape with the sizes. If it is not there, it is made,
// or else nil is returned. Nearly all lookups find an exact key in its home
// block of what is held strongly, which is written out here: up to rank 4 it
// takes no call and few branches, all the same nearly always. So the processor
// is ahead with the next lookups while one waits for memory.
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
		kids := n.kids.Load()
		n = kids.slots[classOf(sizes[n.level], t.spread)&kids.mask]
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

// hashed is static for sizes without an exact key.
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

// missed is static for a shape that is not there, unless it has moved meanwhile.
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

// isStatic tells the shape with the sizes from others with the same key.
func isStatic(sizes []int) func(*Shape) bool {
	return func(s *Shape) bool { return s.dims == nil && slices.Equal(s.sizes, sizes) }
}

// symbolic returns the one shape with the dimensions, of which not all have a
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
			own[i].symbol = strings.Clone(own[i].symbol) // it may be part of a whole file
		}
		return &Shape{dims: &own, elements: -1}
	})
}

// layoutPath returns the words that lead to l: one for the shape, then strides
// and flags.
func (in *interner) layoutPath(l *Layout) []int {
	return in.layoutWords(nil, l.shape, l.strides, l.flags)
}

func (in *interner) layoutWords(words []int, s *Shape, strides []int, flags Flags) []int {
	words = append(words, int(in.shapes.keys.of(s.sizes)))
	words = append(words, strides...)
	return append(words, int(flags))
}

// layout returns the one layout that is not plainly row-major.
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
