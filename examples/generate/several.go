package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tensor"
)

// blockRows is how many tokens a block of the pool has.
const blockRows = 16

// several writes some texts together: each is a sequence of a pool. It belongs
// to one goroutine.
type several struct {
	session *tenure.Session
	pool    *tenure.StatePool
	inputs  []string // other than states
	logits  string
	texts   []*text
}

// text is one of them.
type text struct {
	sequence *tenure.StateSequence
	tokens   []int64 // the last one is not read yet
}

// newSeveral makes the texts of a model that was loaded with a pool of states,
// with room for some tokens in all. The caller closes it, before the model.
func newSeveral(m *tenure.Model, blocks int) (s *several, err error) {
	s = new(several)
	if s.inputs, s.logits, err = interfaceOf(m); err != nil {
		return nil, err
	}
	if s.session, err = m.NewSession(); err != nil {
		return nil, err
	}
	if s.pool, err = s.session.NewStatePool(blocks, blockRows); err != nil {
		return nil, errors.Join(err, s.session.Close())
	}
	return s, nil
}

func (s *several) close() error { return errors.Join(s.pool.Close(), s.session.Close()) }

// begin reads a prompt once and begins n texts with it, which share its blocks.
func (s *several) begin(ctx context.Context, prompt []int64, n int, draw func(logits []float32) int64) error {
	first, err := s.pool.NewSequence()
	if err != nil {
		return err
	}
	logits, err := s.step(ctx, []*tenure.StateSequence{first}, [][]int64{prompt})
	if err != nil {
		return err
	}
	for i := range n {
		q := first
		if i > 0 {
			if q, err = first.Fork(); err != nil {
				return err
			}
		}
		s.texts = append(s.texts, &text{q, append(append([]int64{}, prompt...), draw(logits[0]))})
	}
	return nil
}

// advance adds a token to every text. A mask has the places of one length, so
// texts of as many tokens run together where the model has one.
func (s *several) advance(ctx context.Context, draw func(logits []float32) int64) error {
	var groups [][]*text
	for _, x := range s.texts {
		at := slices.IndexFunc(groups, func(g []*text) bool {
			return !slices.Contains(s.inputs, "attention_mask") || g[0].sequence.Len() == x.sequence.Len()
		})
		if at < 0 {
			at, groups = len(groups), append(groups, nil)
		}
		groups[at] = append(groups[at], x)
	}
	for _, g := range groups {
		var sequences []*tenure.StateSequence
		var tokens [][]int64
		for _, x := range g {
			sequences, tokens = append(sequences, x.sequence), append(tokens, x.tokens[len(x.tokens)-1:])
		}
		logits, err := s.step(ctx, sequences, tokens)
		if err != nil {
			return err
		}
		for i, x := range g {
			x.tokens = append(x.tokens, draw(logits[i]))
		}
	}
	return nil
}

// step runs the model with as many tokens of each sequence, and returns the
// logits of the next token of each.
func (s *several) step(ctx context.Context, sequences []*tenure.StateSequence, tokens [][]int64) (logits [][]float32, err error) {
	in := tenure.Inputs{}
	defer func() {
		for _, x := range in {
			err = errors.Join(err, x.Tensor().Release())
		}
	}()
	for _, name := range s.inputs {
		var list []int64
		for i, q := range sequences {
			if name == "attention_mask" {
				list = append(list, slices.Repeat([]int64{1}, q.Len()+len(tokens[i]))...)
				continue
			}
			for j, token := range tokens[i] {
				if name == "position_ids" {
					token = int64(q.Len() + j)
				}
				list = append(list, token)
			}
		}
		x, err := tensor.Of(list, len(sequences), len(list)/len(sequences))
		if err != nil {
			return nil, err
		}
		in[name] = x
	}
	out, err := s.pool.Run(ctx, sequences, in)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, out.Release()) }()
	r, err := tensor.Read[float32](out[s.logits])
	if err != nil {
		return nil, err
	}
	defer r.Release()
	per := len(r.Data) / len(sequences)
	for i := range sequences {
		one := r.Data[i*per:][:per]
		logits = append(logits, append([]float32{}, one[per-per/len(tokens[0]):]...))
	}
	return logits, nil
}

// runSeveral writes all texts to out, and what they took to about.
func runSeveral(o options, out, about io.Writer) (err error) {
	m, err := loadWith(o.model, tenure.WithStatePool())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	words := newWords(m.Metadata().Properties["characters"])
	if len(o.prompts) == 0 {
		o.prompts = []string{o.prompt}
	}
	var prompts [][]int64
	blocks := 0
	for _, p := range o.prompts {
		list, err := words.tokens(p, o.ids)
		if err != nil {
			return err
		}
		prompts = append(prompts, list)
		blocks += o.texts * ((len(list)+o.tokens)/blockRows + 1)
	}
	s, err := newSeveral(m, blocks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	ctx, sampler := context.Background(), sampling.New(o.sampling, o.seed)
	for _, list := range prompts {
		if err := s.begin(ctx, list, o.texts, sampler.Draw); err != nil {
			return err
		}
	}
	for range o.tokens - 1 {
		if err := s.advance(ctx, sampler.Draw); err != nil {
			return err
		}
	}
	for _, x := range s.texts {
		fmt.Fprintln(out, words.text(x.tokens...))
	}
	stats, err := s.pool.Stats()
	if err != nil {
		return err
	}
	fmt.Fprintf(about, "%d texts of %d tokens; %d bytes of states in %d blocks, %d used, %d shared\n", len(s.texts), o.tokens, stats.Bytes, stats.Blocks, stats.Used, stats.Shared)
	return nil
}
