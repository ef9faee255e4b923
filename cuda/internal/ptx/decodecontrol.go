package ptx

// leave ends the thread.
func leave(t *thread, _ *inst) {
	t.state = left
	t.yield = true
}

func runBranch(t *thread, in *inst) { t.pc = int(in.x) }

func decodeBra(d *decoder) {
	d.mod("uni")
	if !d.count(1, 1) {
		return
	}
	o := d.ops[0]
	if o.kind != aWord || o.negated {
		d.fail(o.line, o, "a label")
	}
	d.jumps = append(d.jumps, jump{len(d.kernel.code), o.text, o.line})
	d.in.run = runBranch
}

func decodeExit(d *decoder) {
	if d.root == "ret" {
		d.mod("uni")
	}
	d.count(0, 0)
	d.in.run = leave
}

func decodeTrap(d *decoder) {
	d.count(0, 0)
	d.in.run = func(t *thread, _ *inst) { t.fail("got a trap, want an end of the kernel") }
}

// decodeBar reads bar.sync and bar.warp.sync.
func decodeBar(d *decoder) {
	if d.mod("warp") != "" {
		d.need("sync")
		if d.count(1, 1) {
			d.in.b, d.in.run = d.src(d.ops[0], u32), runConverge
		}
		return
	}
	d.mod("cta")
	d.need("sync")
	d.barrier(true)
}

func decodeBarrier(d *decoder) {
	d.mod("cta")
	d.need("sync")
	d.barrier(d.mod("aligned") != "")
}

// barrier decodes the operands of a barrier of the block: its number, and
// perhaps how many threads take part. flag says that the threads of a warp come
// together.
func (d *decoder) barrier(aligned bool) {
	if d.count(1, 2) {
		d.in.a, d.in.b, d.in.flag, d.in.run = d.src(d.ops[0], u32), -1, aligned, runBarrier
		if len(d.ops) == 2 {
			d.in.b = d.src(d.ops[1], u32)
		}
	}
}

// decodeShfl reads shfl.sync.mode.b32 d|p, a, b, c, mask.
func decodeShfl(d *decoder) {
	d.need("sync")
	mode := d.need("up", "down", "bfly", "idx")
	d.typ(b32)
	if !d.count(5, 5) {
		return
	}
	d.in.n = map[string]uint8{"up": shuffleUp, "down": shuffleDown, "bfly": shuffleXor, "idx": shuffleIndex}[mode]
	result := d.ops[0]
	d.in.d2 = -1
	if result.kind == aPair {
		d.in.d2 = d.dst(operand{kind: aWord, text: result.second, line: result.line}, pred)
		result.kind = aWord
	}
	d.in.d, d.in.a, d.in.e = d.dst(result, b32), d.src(d.ops[1], b32), d.src(d.ops[2], u32)
	d.in.c, d.in.b = d.src(d.ops[3], u32), d.src(d.ops[4], u32)
	d.in.run = runConverge
}

// decodeVote reads vote.sync.all.pred p, q, mask and the like.
func decodeVote(d *decoder) {
	d.need("sync")
	mode := d.need("all", "any", "uni", "ballot")
	result := pred
	if mode == "ballot" {
		result = b32
	}
	d.typ(result)
	if d.count(3, 3) {
		d.in.n = map[string]uint8{"all": voteAll, "any": voteAny, "uni": voteUniform, "ballot": voteBallot}[mode]
		d.in.d = d.dst(d.ops[0], result)
		d.in.a, d.in.flag = d.predicate(d.ops[1])
		d.in.b, d.in.run = d.src(d.ops[2], u32), runConverge
	}
}

// decodeActivemask gives the lane of the thread alone: threads are independent,
// and a kernel must bear any mask that contains it.
func decodeActivemask(d *decoder) {
	d.typ(b32)
	if d.count(1, 1) {
		d.in.d, d.in.a, d.in.run = d.dst(d.ops[0], b32), d.specialSlot("%lanemask_eq", d.line), runMov
	}
}
