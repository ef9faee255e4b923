package page_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// synthetic returns a plan of so many steps, with all kinds of values: a stack
// of layers whose results live for random times, some in place, some as views,
// some declined. It is placed by first fit.
func synthetic(count int, seed uint64) *plan.Plan {
	s := &synthesis{rand: rand.New(rand.NewPCG(seed, 1)), taken: map[plan.Time][][2]int64{},
		p: &plan.Plan{Format: plan.Format, Model: "sha256:5e17", Threads: 2, MaxConcurrent: 3, Steps: make([]plan.Step, count)}}
	for i := range 4 {
		name := fmt.Sprintf("past_key_values.%d.key", i)
		s.p.Shapes = append(s.p.Shapes, plan.Shape{Name: name, Type: "f32[1,512]"})
		s.add(plan.Value{Name: name, Type: "f32[1,512]", Space: plan.SpaceInput, Arg: i, Size: 2048, End: s.last()})
		s.p.IOBytes += 2048
	}
	for i := range count / 5 {
		size := int64(256 * (1 + s.rand.IntN(64)))
		w := s.add(plan.Value{Name: fmt.Sprintf("model.layers.%d.mlp.weight", i), Type: "f32[?]", Space: plan.SpaceWeight, Size: size, End: s.last()})
		if s.p.WeightBytes += size; i%3 == 0 {
			s.p.Packed = append(s.p.Packed, plan.Packed{Weight: w.Name, ID: w.ID, Bytes: size + 512, Unloaded: size})
			s.p.WeightBytes += 512
		}
	}
	for k := range s.p.Steps {
		s.step(k)
	}
	s.p.ScratchBytes = 2 * s.p.ScratchPerThread
	at, most := plan.Time(0), int64(0)
	for t := range plan.Time(2 * count) {
		if live := liveAt(s.p, t); live > most {
			at, most = t, live
		}
	}
	s.p.LowerBoundBytes, s.p.Peak = most, plan.Peak{Step: int(at / 2), Bytes: most}
	for _, v := range s.p.Values {
		if v.Space == plan.SpaceArena && v.Size > 0 && v.Start <= at && at < v.End {
			s.p.Peak.Live = append(s.p.Peak.Live, v.ID)
		}
	}
	return s.p
}

type synthesis struct {
	rand  *rand.Rand
	p     *plan.Plan
	taken map[plan.Time][][2]int64 // byte ranges of the arena that are taken at each time
	open  []int                    // values that a later step may read
}

func (s *synthesis) last() plan.Time { return plan.Time(2 * len(s.p.Steps)) }

func (s *synthesis) add(v plan.Value) *plan.Value {
	v.ID = 3*len(s.p.Values) + 1
	s.p.Values = append(s.p.Values, v)
	return &s.p.Values[len(s.p.Values)-1]
}

func (s *synthesis) step(k int) {
	ops := []string{"matmul", "add", "softmax", "reshape", "concat"}
	op, node := ops[s.rand.IntN(len(ops))], fmt.Sprintf("/model/layers.%d/self_attn/node_%d", k/20, k)
	step := plan.Step{Call: k, Op: op, Node: node}
	if op == "matmul" {
		step.Scratch = int64(64 * (1 + s.rand.IntN(16)))
		s.p.ScratchPerThread = max(s.p.ScratchPerThread, step.Scratch)
		w := s.p.Values[4+s.rand.IntN(len(s.p.Steps)/5)]
		step.Reads = append(step.Reads, w.ID)
	}
	read := plan.Time(2 * k)
	s.open = slices.DeleteFunc(s.open, func(i int) bool { return s.p.Values[i].End <= read })
	from := -1
	if len(s.open) > 0 {
		from = s.open[s.rand.IntN(len(s.open))]
		step.Reads = append(step.Reads, s.p.Values[from].ID)
	}
	v := plan.Value{Name: node + "/" + op + "_output_0", Type: fmt.Sprintf("f32[1,%d]", k), Start: read + 1, End: min(read+2+plan.Time(2*s.rand.IntN(40)), s.last()),
		Space: plan.SpaceArena, Size: int64(40 + 100*s.rand.IntN(40))}
	switch {
	case k == len(s.p.Steps)-1:
		v.Space, v.End = plan.SpaceOutput, s.last()
		s.p.IOBytes += v.Size
	case op == "reshape" && from >= 0 && s.p.Values[from].Space == plan.SpaceArena:
		of := s.p.Values[from]
		v.Offset, v.Size, v.End = of.Offset, of.Size, of.End
		s.p.InPlace = append(s.p.InPlace, plan.InPlace{Call: k, Value: v.Name, Of: of.Name, Kind: plan.AliasView, Bytes: v.Size})
	default:
		v.Offset = s.place(v)
		if from >= 0 && op == "add" {
			s.p.Declined = append(s.p.Declined, plan.Declined{Call: k, Op: op, Node: node, Value: s.p.Values[from].Name, Reason: "it is read later", Bytes: v.Size})
		}
	}
	s.p.Steps[k] = step
	s.add(v)
	s.open = append(s.open, len(s.p.Values)-1)
}

// place finds the lowest free block for v and takes it.
func (s *synthesis) place(v plan.Value) int64 {
	var busy [][2]int64
	for t := v.Start; t < v.End; t++ {
		busy = append(busy, s.taken[t]...)
	}
	slices.SortFunc(busy, func(a, b [2]int64) int { return int(a[0] - b[0]) })
	at, size := int64(0), (v.Size+63)/64*64
	for _, r := range busy {
		if r[0] >= at+size {
			break
		}
		at = max(at, r[1])
	}
	for t := v.Start; t < v.End; t++ {
		s.taken[t] = append(s.taken[t], [2]int64{at, at + size})
	}
	s.p.ArenaBytes = max(s.p.ArenaBytes, at+size)
	return at
}

// liveAt counts the bytes of the arena that live at a time, block by block.
func liveAt(p *plan.Plan, t plan.Time) int64 {
	blocks := map[int64]bool{}
	for _, v := range p.Values {
		if v.Space != plan.SpaceArena || t < v.Start || t >= v.End {
			continue
		}
		for b := v.Offset / 64; b*64 < v.Offset+v.Extent(); b++ {
			blocks[b] = true
		}
	}
	return int64(64 * len(blocks))
}
