package solve_test

import "github.com/tenure-go/tenure/plan"

// A network writes down the lifetimes of a convolutional network, step by step,
// the way a planner does.
type network struct {
	plan.Problem
	step int
}

// value names a piece by its storage and its index there.
type value struct{ storage, piece int }

func (n *network) piece(v value) *plan.Piece { return &n.Storages[v.storage].Pieces[v.piece] }

// read keeps v alive until the current step has written.
func (n *network) read(v value) { n.piece(v).End = max(n.piece(v).End, plan.Time(2*n.step+2)) }

// step computes a new value of floats elements from ins.
func (n *network) compute(floats int, ins ...value) value {
	for _, in := range ins {
		n.read(in)
	}
	at := plan.Time(2*n.step + 1)
	n.step++
	n.Storages = append(n.Storages, plan.Storage{Size: int64(4 * floats), Pieces: []plan.Piece{{Size: int64(4 * floats), Start: at, End: at + 1}}})
	return value{len(n.Storages) - 1, 0}
}

// overwrite computes a value of floats elements into the first bytes of in.
func (n *network) overwrite(floats int, in value, others ...value) value {
	for _, other := range others {
		n.read(other)
	}
	old := n.piece(in)
	at := plan.Time(2*n.step + 1)
	old.End = max(old.End, at)
	n.step++
	c := &n.Storages[in.storage]
	c.Pieces = append(c.Pieces, plan.Piece{Offset: old.Offset, Size: int64(4 * floats), Start: at, End: at + 1})
	return value{in.storage, len(c.Pieces) - 1}
}

// join makes the storages of ins parts of one, one after another, and returns a
// value over all of it that a step has made by doing nothing: a concatenation
// whose parts were written in place.
func (n *network) join(ins ...value) value {
	var size int64
	var pieces []plan.Piece
	for _, in := range ins {
		c := &n.Storages[in.storage]
		for _, x := range c.Pieces {
			x.Offset += size
			x.End = max(x.End, plan.Time(2*n.step+2))
			pieces = append(pieces, x)
		}
		size += c.Size
		c.Size, c.Pieces = 0, nil
	}
	at := plan.Time(2*n.step + 1)
	n.step++
	pieces = append(pieces, plan.Piece{Size: size, Start: at, End: at + 1})
	n.Storages = append(n.Storages, plan.Storage{Size: size, Pieces: pieces})
	return value{len(n.Storages) - 1, len(pieces) - 1}
}

// densenet is DenseNet-121 on one picture of 224 by 224: as it stands, with its
// elementwise steps in place, or with the concatenations of its blocks in place
// too.
func densenet(inPlace, joined bool) *plan.Problem {
	n := &network{}
	elementwise := func(floats int, in value) value {
		if inPlace {
			return n.overwrite(floats, in)
		}
		return n.compute(floats, in)
	}
	x := n.compute(64 * 112 * 112)
	for range 3 {
		x = elementwise(64*112*112, x)
	}
	x = n.compute(64*56*56, x)
	channels, side := 64, 56
	for block, layers := range []int{6, 12, 24, 16} {
		for range layers {
			area := side * side
			y := n.compute(channels*area, x) // the concatenation is read again
			for range 2 {
				y = elementwise(channels*area, y)
			}
			y = n.compute(128*area, y)
			for range 3 {
				y = elementwise(128*area, y)
			}
			y = n.compute(32*area, y)
			channels += 32
			if joined {
				x = n.join(x, y)
			} else {
				x = n.compute(channels*area, x, y)
			}
		}
		if block == 3 {
			break
		}
		for range 3 {
			x = elementwise(channels*side*side, x)
		}
		channels /= 2
		x = n.compute(channels*side*side, x)
		side /= 2
		x = n.compute(channels*side*side, x)
	}
	for range 3 {
		x = elementwise(channels*side*side, x)
	}
	n.read(n.compute(channels, x))
	return &n.Problem
}

// resnet is ResNet-50 with everything in place that can be: activations,
// additions into the longer branch, and the pooling, which leaves the greater
// part of its operand behind.
func resnet() *plan.Problem {
	n := &network{}
	conv := func(floats int, in value) value {
		return n.overwrite(floats, n.overwrite(floats, n.compute(floats, in)))
	}
	x := conv(64*112*112, value{n.compute(3 * 224 * 224).storage, 0})
	x = n.overwrite(64*56*56, x)
	channels, side := 64, 56
	for stage, blocks := range []int{3, 4, 6, 3} {
		for block := range blocks {
			if stage > 0 && block == 0 {
				side /= 2
			}
			area, wide := side*side, 4*channels
			y := conv(channels*area, x)
			y = conv(channels*area, y)
			y = n.compute(wide*area, y)
			if block == 0 {
				x = n.compute(wide*area, x)
			}
			x = n.overwrite(wide*area, n.overwrite(wide*area, x, y))
		}
		channels *= 2
	}
	n.read(n.overwrite(2048, x))
	return &n.Problem
}
