package selection

import (
	"math"
	"slices"
)

// Suppression chooses boxes [Batch, Boxes, 4] by scores [Batch, Classes,
// Boxes].
type Suppression struct {
	Batch, Classes, Boxes int
	Most                  int     // boxes per class
	Overlap               float32 // the largest part of their union that two boxes may share
	Score                 float32 // a box needs more, if HasScore
	HasScore              bool
	Centered              bool // boxes are middles and sizes, else two corners
}

// SuppressionScratch is the scratch of a Suppression: room for what is known of
// each box.
type SuppressionScratch struct {
	Order  []int64   // the candidates, the best one first
	Chosen []float32 // corners and area of the chosen ones, row by row
	Begin  []int32   // of each row, the place of its first box
	Count  []int32   // of each row, how many boxes were chosen
}

const maxRows = 1 << 16

const chosenFloats = 5 // y and x of the least corner, of the largest, and the area

// SuppressionBytes returns the bytes of scratch for that many boxes.
func SuppressionBytes(boxes int) int { return boxes * (8 + 4*chosenFloats + 4 + 4) }

// NonMaxSuppression writes batch, class and box of those that are chosen, and
// returns how many. Each list of scratch has Boxes entries.
//
// A candidate is compared with those of the chosen boxes that may share a row
// of the picture with it, so that boxes apart, such as those of classes that a
// model has moved apart, cost nothing.
func NonMaxSuppression(s *Suppression, dst []int64, boxes, scores []float32, scratch SuppressionScratch) int {
	count := 0
	for batch := range s.Batch {
		corners := boxes[batch*s.Boxes*4:][:s.Boxes*4]
		for class := range s.Classes {
			candidates := s.candidates(scores[(batch*s.Classes+class)*s.Boxes:][:s.Boxes], scratch.Order)
			r := s.rows(corners, candidates, scratch)
			for _, box := range candidates {
				if r.n == s.Most {
					break
				}
				if r.choose(s.corners(corners[4*box:]), s.Overlap) {
					dst[3*count], dst[3*count+1], dst[3*count+2] = int64(batch), int64(class), box
					count++
				}
			}
		}
	}
	return count
}

// candidates are the boxes with enough score, the best one first; of equal ones
// the first comes first.
func (s *Suppression) candidates(score []float32, order []int64) []int64 {
	n := 0
	for i, v := range score {
		if !s.HasScore || v > s.Score {
			order[n] = candidateKey(v, i)
			n++
		}
	}
	slices.Sort(order[:n])
	for i, k := range order[:n] {
		order[i] = k & math.MaxUint32
	}
	return order[:n]
}

// candidateKey is less than another one where a score is larger, or equal for a
// box that comes first. NaN is the least score.
func candidateKey(score float32, box int) int64 {
	bits := math.Float32bits(score + 0) // of the two zeros, the positive one
	switch {
	case score != score:
		bits = 0
	case bits>>31 != 0:
		bits = ^bits
	default:
		bits |= 1 << 31
	}
	return int64(^bits^1<<31)<<32 | int64(box)
}

// rows is the chosen boxes by the row in which they begin. A row is at least as
// high as the highest candidate, so a box reaches into one more at most.
type rows struct {
	SuppressionScratch
	n     int // chosen boxes
	least float32
	scale float32 // rows for a unit of height; 0 if all boxes are in one row
}

// rows returns the rows for the candidates, without a chosen box.
func (s *Suppression) rows(boxes []float32, candidates []int64, scratch SuppressionScratch) rows {
	least, most, height := float32(math.Inf(1)), float32(math.Inf(-1)), float32(0)
	for _, box := range candidates {
		c := s.corners(boxes[4*box:])
		if c[0] <= c[2] { // false for NaN: such a box overlaps none
			least, most, height = min(least, c[0]), max(most, c[2]), max(height, c[2]-c[0])
		}
	}
	r := rows{SuppressionScratch: scratch, least: least}
	n := 1
	// Differences and quotients are rounded, by at most a hundredth of a row if
	// there are no more than maxRows, so a row is a little higher than the
	// highest box.
	if scale := 1 / (height * 1.05); most > least && !math.IsInf(float64(most-least), 0) && !math.IsInf(float64(scale), 0) && scale > 0 {
		n = int(min((most-least)*scale, float32(len(scratch.Begin)-1), maxRows-1)) + 1
		if n > 1 {
			r.scale = min(scale, float32(n)/(most-least))
		}
	}
	n = min(n, len(scratch.Begin))
	r.Begin, r.Count = scratch.Begin[:n], scratch.Count[:n]
	r.count(s, boxes, candidates)
	return r
}

// count gives each row room for its candidates.
func (r *rows) count(s *Suppression, boxes []float32, candidates []int64) {
	clear(r.Count)
	for _, box := range candidates {
		c := s.corners(boxes[4*box:])
		r.Count[r.row(c[0])]++
	}
	begin := int32(0)
	for i, n := range r.Count {
		r.Begin[i], r.Count[i] = begin, 0
		begin += n
	}
}

// row returns the row of a height, the first or the last for one outside.
func (r *rows) row(y float32) int {
	if at := (y - r.least) * r.scale; at > 0 { // false for NaN
		return int(min(at, float32(len(r.Begin)-1)))
	}
	return 0
}

// choose adds a box, unless it overlaps a chosen one too much.
func (r *rows) choose(a [4]float32, overlap float32) bool {
	area := (a[2] - a[0]) * (a[3] - a[1])
	first, last := r.row(a[0]), r.row(a[2])
	if area > 0 {
		for row := max(first-1, 0); row <= min(last+1, len(r.Begin)-1); row++ {
			list := r.Chosen[chosenFloats*r.Begin[row]:][:chosenFloats*r.Count[row]]
			for ; len(list) >= chosenFloats; list = list[chosenFloats:] {
				b := list[:chosenFloats]
				if b[0] >= a[2] || b[2] <= a[0] || b[1] >= a[3] || b[3] <= a[1] {
					continue
				}
				height, width := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
				if height <= 0 || width <= 0 {
					continue
				}
				both := height * width
				if b[4] > 0 && both > 0 && both/(area+b[4]-both) > overlap {
					return false
				}
			}
		}
	}
	to := r.Chosen[chosenFloats*(r.Begin[first]+r.Count[first]):][:chosenFloats]
	copy(to, a[:])
	to[4] = area
	r.Count[first]++
	r.n++
	return true
}

// corners returns the least and the largest coordinates of a box.
func (s *Suppression) corners(box []float32) [4]float32 {
	if s.Centered {
		h, w := box[3]/2, box[2]/2
		return [4]float32{box[1] - h, box[0] - w, box[1] + h, box[0] + w}
	}
	return [4]float32{min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])}
}
