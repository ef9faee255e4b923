package tokenizer

import "fmt"

// truncate cuts texts so that they fit with the special tokens.
func (t *Tokenizer) truncate(encodings []Encoding, set *settings) error {
	c := set.truncation
	if !c.on {
		return nil
	}
	most := c.most
	if t.processor != nil && !set.plain {
		most -= t.processor.added(len(encodings) == 2)
	}
	if most < 0 {
		return fmt.Errorf("tokenizer: got a limit of %d tokens, want room for the special ones", c.most)
	}
	total := 0
	for i := range encodings {
		total += encodings[i].Len()
	}
	if total <= most && most > 0 {
		return nil
	}
	sizes, err := c.sizes(encodings, total, most)
	if err != nil {
		return err
	}
	for i := range encodings {
		if n := sizes[i]; n > 0 && n < encodings[i].Len() && c.stride >= n {
			return fmt.Errorf("tokenizer: got a stride of %d, want less than the %d tokens of a part", c.stride, n)
		}
		encodings[i].truncate(sizes[i], c.stride, c.left)
	}
	return nil
}

// sizes returns how many tokens are left of each text.
func (c truncation) sizes(encodings []Encoding, total, most int) ([2]int, error) {
	var sizes [2]int
	for i := range encodings {
		sizes[i] = encodings[i].Len()
	}
	switch {
	case most == 0:
		return [2]int{}, nil
	case c.strategy != longestFirst:
		i := int(c.strategy - onlyFirst)
		if i >= len(encodings) {
			return sizes, fmt.Errorf("tokenizer: got one text, want two: the file says that the second is truncated")
		}
		if sizes[i] <= total-most {
			return sizes, fmt.Errorf("tokenizer: got a text of %d tokens of %d, which cannot be cut to %d together: want a larger limit", sizes[i], total, most)
		}
		sizes[i] -= total - most
	case len(encodings) == 1:
		sizes[0] = most
	default:
		short, swapped := min(sizes[0], sizes[1]), sizes[0] > sizes[1]
		long := max(short, most-short)
		if short+long > most {
			short = most / 2
			long = short + most%2
		}
		if sizes = [2]int{short, long}; swapped {
			sizes = [2]int{long, short}
		}
	}
	return sizes, nil
}
