package selection

import (
	"cmp"
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

// NonMaxSuppression writes batch, class and box of those that are chosen, and
// returns how many. scratch has Boxes numbers.
func NonMaxSuppression(s *Suppression, dst []int64, boxes, scores []float32, scratch []int64) int {
	count := 0
	for batch := range s.Batch {
		corners := boxes[batch*s.Boxes*4:][:s.Boxes*4]
		for class := range s.Classes {
			score := scores[(batch*s.Classes+class)*s.Boxes:][:s.Boxes]
			from := count
			for _, box := range s.candidates(score, scratch) {
				if count-from == s.Most {
					break
				}
				if !s.covered(corners, box, dst[3*from:3*count]) {
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
func (s *Suppression) candidates(score []float32, scratch []int64) []int64 {
	n := 0
	for i, v := range score {
		if !s.HasScore || v > s.Score {
			scratch[n] = int64(i)
			n++
		}
	}
	slices.SortFunc(scratch[:n], func(a, b int64) int {
		if c := cmp.Compare(score[b], score[a]); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return scratch[:n]
}

// covered reports whether a box overlaps a chosen one too much.
func (s *Suppression) covered(boxes []float32, box int64, chosen []int64) bool {
	a := s.corners(boxes[4*box:])
	for i := 2; i < len(chosen); i += 3 {
		b := s.corners(boxes[4*chosen[i]:])
		height, width := min(a[2], b[2])-max(a[0], b[0]), min(a[3], b[3])-max(a[1], b[1])
		if height <= 0 || width <= 0 {
			continue
		}
		areaA, areaB, both := (a[2]-a[0])*(a[3]-a[1]), (b[2]-b[0])*(b[3]-b[1]), height*width
		if areaA > 0 && areaB > 0 && both > 0 && both/(areaA+areaB-both) > s.Overlap {
			return true
		}
	}
	return false
}

// corners returns the least and the largest coordinates of a box.
func (s *Suppression) corners(box []float32) [4]float32 {
	if s.Centered {
		h, w := box[3]/2, box[2]/2
		return [4]float32{box[1] - h, box[0] - w, box[1] + h, box[0] + w}
	}
	return [4]float32{min(box[0], box[2]), min(box[1], box[3]), max(box[0], box[2]), max(box[1], box[3])}
}
