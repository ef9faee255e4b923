package plan

import "slices"

// Validate reports the first contradiction in p: a number out of its range, a
// value outside its space, an id or call listed twice, figures that do not add
// up. It proves nothing about the program; that is the work of package
// plan/check. The error is an ErrDocument.
func (p *Plan) Validate() error {
	if p.Format != Format {
		return docErr("format: got %d, want %d", p.Format, Format)
	}
	for _, check := range []func() error{p.validateFigures, p.validateSteps, p.validateValues, p.validatePeak, p.validateLists} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) validateFigures() error {
	var sum int64
	for _, figure := range []struct {
		name  string
		bytes int64
	}{
		{"arena_bytes", p.ArenaBytes}, {"io_bytes", p.IOBytes}, {"weight_bytes", p.WeightBytes}, {"scratch_bytes", p.ScratchBytes},
	} {
		if figure.bytes < 0 || figure.bytes > MaxBytes-sum {
			return docErr("%s: got %d, want 0 or more, and a total of at most %d", figure.name, figure.bytes, int64(MaxBytes))
		}
		sum += figure.bytes
	}
	if p.Threads < 1 {
		return docErr("threads: got %d, want at least 1", p.Threads)
	}
	if per, n := p.ScratchPerThread, int64(p.Threads); per < 0 || per > MaxBytes/n || per*n != p.ScratchBytes {
		return docErr("scratch_bytes: got %d, want scratch_per_thread × threads = %d × %d", p.ScratchBytes, per, n)
	}
	if n := int64(p.MaxConcurrent); n < 1 || p.PerRun() > (MaxBytes-p.WeightBytes)/n {
		return docErr("max_concurrent: got %d runs of %d bytes each, want at least 1, and a total of at most %d", n, p.PerRun(), int64(MaxBytes))
	}
	if p.LowerBoundBytes < 0 || p.LowerBoundBytes > p.ArenaBytes {
		return docErr("lower_bound_bytes: got %d, want 0 to arena_bytes = %d", p.LowerBoundBytes, p.ArenaBytes)
	}
	return nil
}

func (p *Plan) validateSteps() error {
	calls := make(map[int]bool, len(p.Steps))
	for i, s := range p.Steps {
		switch {
		case s.Call < 0:
			return docErr("steps[%d].call: got %d, want 0 or more", i, s.Call)
		case calls[s.Call]:
			return docErr("steps[%d].call: got %d a second time, want every call once", i, s.Call)
		case s.Moved < 0 || s.Moved > MaxBytes:
			return docErr("steps[%d].moved: got %d, want 0 to %d", i, s.Moved, int64(MaxBytes))
		case s.Scratch < 0 || s.Scratch > p.ScratchPerThread:
			return docErr("steps[%d].scratch: got %d, want 0 to scratch_per_thread = %d", i, s.Scratch, p.ScratchPerThread)
		}
		calls[s.Call] = true
	}
	return nil
}

// LastTime returns the end of the run in half-steps: no life of the plan is
// longer. It leaves one step after the last for what has to outlive it.
func (p *Plan) LastTime() Time { return Time(2*len(p.Steps) + 2) }

func (p *Plan) validateValues() error {
	ids := make(map[int]bool, len(p.Values))
	for i := range p.Values {
		v := &p.Values[i]
		switch v.Space {
		case SpaceArena, SpaceInput, SpaceOutput, SpaceWeight, SpaceConstant, SpaceOwn, SpaceSlot:
		default:
			return docErr("values[%d].space: got %q, want one of %q, %q, %q, %q, %q, %q, %q", i, v.Space,
				SpaceArena, SpaceInput, SpaceOutput, SpaceWeight, SpaceConstant, SpaceOwn, SpaceSlot)
		}
		if v.Strides != nil && v.Offset >= 0 && v.Offset <= MaxBytes {
			if err := v.checkStrides(); err != nil {
				return docErr("values[%d].strides: %w", i, err)
			}
		}
		switch {
		case v.ID < 0 || ids[v.ID]:
			return docErr("values[%d].id: got %d, want 0 or more, and every id once", i, v.ID)
		case v.Offset < 0 || v.Size < 0 || v.Size > MaxBytes-v.Offset:
			return docErr("values[%d]: bytes: got %d at offset %d, want both in 0 to %d", i, v.Size, v.Offset, int64(MaxBytes))
		case v.Space == SpaceArena && v.Offset+v.Extent() > p.ArenaBytes:
			return docErr("values[%d]: end: got %d bytes at offset %d, want them within the arena's %d", i, v.Extent(), v.Offset, p.ArenaBytes)
		case v.Start < 0 || v.Start > v.End || v.End > p.LastTime() || v.Space == SpaceArena && v.Start == v.End:
			return docErr("values[%d]: life: got [%d,%d), want a start before its end, within [0,%d)", i, v.Start, v.End, p.LastTime())
		case v.Space == SpaceOwn && (v.Size != 0 || v.Offset != 0):
			return docErr("values[%d]: bytes: got %d at offset %d in a buffer of its own, want 0: the size depends on data", i, v.Size, v.Offset)
		case v.Arg < 0:
			return docErr("values[%d].arg: got %d, want 0 or more", i, v.Arg)
		}
		ids[v.ID] = true
	}
	for i, v := range p.Values {
		if v.Space == SpaceSlot && !ids[v.Arg] {
			return docErr("values[%d].arg: got %d, want the id of the value that is stacked", i, v.Arg)
		}
	}
	for i, s := range p.Steps {
		if j := slices.IndexFunc(s.Reads, func(id int) bool { return !ids[id] }); j >= 0 {
			return docErr("steps[%d].reads[%d]: got id %d, want that of a value", i, j, s.Reads[j])
		}
	}
	return nil
}

func (p *Plan) validatePeak() error {
	step := p.Peak.Step
	if step < 0 || step > max(0, len(p.Steps)-1) {
		return docErr("peak.step: got %d, want the index of one of %d steps", step, len(p.Steps))
	}
	if p.Peak.Bytes < 0 || p.Peak.Bytes > p.ArenaBytes {
		return docErr("peak.bytes: got %d, want 0 to arena_bytes = %d", p.Peak.Bytes, p.ArenaBytes)
	}
	byID := make(map[int]*Value, len(p.Values))
	for i := range p.Values {
		byID[p.Values[i].ID] = &p.Values[i]
	}
	for i, id := range p.Peak.Live {
		v := byID[id]
		if v == nil || v.Space != SpaceArena {
			return docErr("peak.live[%d]: got id %d, want that of a value of the arena, and every id once", i, id)
		}
		if v.Start > Time(2*step+1) || v.End <= Time(2*step) {
			return docErr("peak.live[%d]: got id %d with the life [%d,%d), want a value that lives in step %d", i, id, v.Start, v.End, step)
		}
		delete(byID, id)
	}
	return nil
}

func (p *Plan) validateLists() error {
	for i, x := range p.InPlace {
		switch x.Kind {
		case AliasView, AliasSame, AliasAccumulate, AliasUpdate, AliasPermute, AliasNarrow, AliasPart:
		default:
			return docErr("in_place[%d].kind: got %q, want one of %q, %q, %q, %q, %q, %q, %q", i, x.Kind,
				AliasView, AliasSame, AliasAccumulate, AliasUpdate, AliasPermute, AliasNarrow, AliasPart)
		}
		if x.Call < 0 || x.Operand < 0 || x.Result < 0 || x.Bytes < 0 {
			return docErr("in_place[%d]: got call %d, operand %d, result %d, bytes %d, want 0 or more", i, x.Call, x.Operand, x.Result, x.Bytes)
		}
	}
	for i, x := range p.Declined {
		if x.Call < 0 || x.Operand < 0 || x.Bytes < 0 {
			return docErr("declined[%d]: got call %d, operand %d, bytes %d, want 0 or more", i, x.Call, x.Operand, x.Bytes)
		}
	}
	for i, x := range p.Copies {
		if x.Bytes < 0 {
			return docErr("copies[%d].bytes: got %d, want 0 or more", i, x.Bytes)
		}
	}
	for i, x := range p.Packed {
		if x.ID < 0 || x.Bytes < 0 || x.Unloaded < 0 {
			return docErr("packed[%d]: got id %d, bytes %d, unloaded %d, want 0 or more", i, x.ID, x.Bytes, x.Unloaded)
		}
	}
	return nil
}
