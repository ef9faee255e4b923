package weights

// The stages of a store that may take a while, as Options.Progress calls them.
const (
	ReadingFile    = "reading file"
	PackingWeights = "packing weights"
)

// tally counts the bytes of one stage.
type tally struct {
	stage       string
	done, total int64
	report      func(stage string, done, total int64) // nil: no progress is reported
}

// count begins a stage of so many bytes. There is nothing to report of none.
func (s *Store) count(stage string, total int64) tally {
	if total <= 0 {
		return tally{}
	}
	t := tally{stage: stage, total: total, report: s.opts.Progress}
	t.add(0)
	return t
}

func (t *tally) add(bytes int64) {
	if t.report == nil {
		return
	}
	t.done = min(t.done+bytes, t.total)
	t.report(t.stage, t.done, t.total)
}

// end ends the stage. What was not counted, because another process had it or a
// fault came between, is done with too.
func (t *tally) end() {
	if t.done < t.total {
		t.add(t.total - t.done)
	}
}

// unpacked sums up the panels that are yet to be packed.
func (s *Store) unpacked(uses []Use) (sum int64) {
	seen := map[panelKey]bool{}
	for _, u := range uses {
		for _, p := range u.Panels {
			if key := p.key(); !seen[key] && s.Panel(p) == nil {
				seen[key] = true
				sum += int64(p.Bytes)
			}
		}
	}
	return sum
}

// copyCounted copies a file in parts and reports the progress after each.
func (s *Store) copyCounted(dst, src []byte) {
	const part = 16 << 20
	t := s.count(ReadingFile, int64(len(src)))
	for len(src) > 0 {
		n := copy(dst[:min(part, len(dst))], src)
		dst, src = dst[n:], src[n:]
		t.add(int64(n))
	}
}
