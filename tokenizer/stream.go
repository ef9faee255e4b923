package tokenizer

import "strings"

// A Stream decodes ids as they are generated. It holds back what may still
// change: bytes of an unfinished character. Text that it gave stays given:
// where byte tokens go on to an invalid one, Decode replaces all of their
// bytes, and a stream those that it still held.
//
// A Stream is used by one goroutine at a time.
type Stream struct {
	t           *Tokenizer
	skipSpecial bool
	// ids are those whose text may decide that of the next: the last ones
	// that gave text, up to settled, and those that have given none yet.
	ids     []int64
	settled int
	prefix  string // the text of ids up to settled
}

// NewStream returns a stream without ids.
func (t *Tokenizer) NewStream(skipSpecial bool) *Stream {
	return &Stream{t: t, skipSpecial: skipSpecial}
}

// Push adds an id and returns the text that it completes, which is whole
// characters: it is empty while there are none.
func (s *Stream) Push(id int64) string {
	if s.prefix == "" && len(s.ids) > 0 {
		if text := s.t.Decode(s.ids, s.skipSpecial); !strings.HasSuffix(text, "\ufffd") {
			s.prefix, s.settled = text, len(s.ids)
		}
	}
	s.ids = append(s.ids, id)
	text := s.t.Decode(s.ids, s.skipSpecial)
	if len(text) <= len(s.prefix) || strings.HasSuffix(text, "\ufffd") {
		return ""
	}
	fresh := after(text, s.prefix)
	settled := len(s.ids) - s.settled
	s.ids = append(s.ids[:0], s.ids[s.settled:]...)
	s.prefix = s.t.Decode(s.ids, s.skipSpecial)
	s.settled = settled
	return fresh
}

// Flush returns the text that was held back, with U+FFFD for an unfinished
// character, and starts the stream anew.
func (s *Stream) Flush() string {
	text := after(s.t.Decode(s.ids, s.skipSpecial), s.prefix)
	s.ids, s.prefix, s.settled = s.ids[:0], "", 0
	return text
}

// after returns what follows a prefix. Bytes that turned out to be no text
// change what was given out before: then it is what follows the part that is
// still the same.
func after(text, prefix string) string {
	if rest, ok := strings.CutPrefix(text, prefix); ok {
		return rest
	}
	same := 0
	for i, r := range prefix {
		if !strings.HasPrefix(text[i:], string(r)) {
			break
		}
		same = i + len(string(r))
	}
	return text[same:]
}
