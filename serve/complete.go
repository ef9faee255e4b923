package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/tenure-go/tenure/serve/sampling"
)

// complete answers a request for completions, of prompts or of a chat.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) (err error) {
	start := time.Now()
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.base, func() { cancel(ErrClosed) })()
	ingress := &claim{}
	defer ingress.release()
	f, err := s.readFields(ctx, w, r, ingress)
	if err != nil {
		s.rejected.count(err)
		return err
	}
	m, err := s.textModel(ctx, f)
	if err != nil {
		return err
	}
	defer m.done()
	c := &completion{server: s, model: m, w: w, start: start}
	defer func() {
		if err != nil {
			s.rejected.count(err)
		}
		m.stats.answered(c.total(), time.Since(start), times{}, err)
	}()
	if m.gen == nil {
		return &apiError{param: "model", text: fmt.Sprintf("model '%s' does not generate text", m.name)}
	}
	if err := c.parse(f, chat); err != nil {
		return err
	}
	ingress.release() // the text is not needed any more
	defer func() {
		if err != nil {
			cancel(errStopped)
		}
		c.joining.Wait()
	}()
	if err := c.begin(ctx); err != nil {
		return err
	}
	if c.stream {
		return c.answerParts()
	}
	return c.answerWhole()
}

// textModel returns the model that a request names, with a use.
func (s *Server) textModel(ctx context.Context, f fields) (*model, error) {
	var name string
	given, err := f.take("model", &name, "the name of a model")
	if err != nil {
		return nil, err
	}
	if !given {
		return nil, wrong("model", "got none, want the name of a model")
	}
	return s.useToRun(ctx, name, "")
}

// completion is a request under way.
type completion struct {
	*textRequest
	server *Server
	model  *model
	w      http.ResponseWriter
	start  time.Time
	out    *outbox
	drawn  []int // tokens of each choice

	joining sync.WaitGroup // what lets sequences join
}

// total returns how many tokens were drawn.
func (c *completion) total() (n int) {
	for _, d := range c.drawn {
		n += d
	}
	return n
}

// parse reads the request, and the prompts in it.
func (c *completion) parse(f fields, chat bool) (err error) {
	g := c.model.gen
	var prompts [][]int64
	name := "prompt"
	if chat {
		name = "messages"
		prompts = make([][]int64, 1)
		prompts[0], err = parseMessages(f, g.files, g.length)
	} else {
		prompts, err = parsePrompts(f, name, g.files, g.length)
	}
	if err != nil {
		return err
	}
	if c.textRequest, err = parseText(f, chat, g.files.sampling); err != nil {
		return err
	}
	for _, p := range prompts {
		if len(p) >= g.length {
			return tooLong(name, g.length, fmt.Sprintf("%d tokens", len(p)))
		}
		for _, id := range p {
			if id >= int64(g.vocabulary) {
				return wrong(name, "got the token %d, want one of the %d that the model has", id, g.vocabulary)
			}
		}
	}
	if n := len(prompts) * c.choices; n > mostPrompts {
		return wrong("n", "got %d choices of %d prompts, want at most %d in all", c.choices, len(prompts), mostPrompts)
	}
	c.prompts = prompts
	return nil
}

// begin promises memory to the sequences of the request, and lets them join:
// those of the first prompt now, and those of others as soon as there is room,
// for which the first ones do not wait. So requests never wait for each other.
func (c *completion) begin(ctx context.Context) error {
	g := c.model.gen
	c.out = newOutbox()
	c.drawn = make([]int, len(c.prompts)*c.choices)
	patience := c.server.config.Patience
	wait, stop := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no memory was free for the states of the request for %v: %w", patience, ErrBusy))
	defer stop()
	join := func(wait context.Context, i int) error {
		q := c.sequences(ctx, i, c.prompts[i])
		if err := g.admit(wait, q); err != nil {
			return err
		}
		g.add(q)
		return nil
	}
	if err := join(wait, 0); err != nil {
		return err
	}
	c.joining.Go(func() {
		for i := 1; i < len(c.prompts); i++ {
			if err := join(ctx, i); err != nil {
				c.out.put(event{err: err})
				return
			}
		}
	})
	return nil
}

// sequences makes those of one prompt: the first one reads it, and the others
// go on from there.
func (c *completion) sequences(ctx context.Context, i int, prompt []int64) *sequence {
	g := c.model.gen
	tokens := g.length - len(prompt)
	if c.tokens > 0 {
		tokens = min(tokens, c.tokens)
	}
	var first *sequence
	for j := range c.choices {
		index := i*c.choices + j
		q := &sequence{g: g, ctx: ctx, index: index, prompt: prompt, room: len(prompt) + tokens, left: tokens, logs: c.logs, onward: c.onward,
			sampler: sampling.New(c.options, c.seed+uint64(index)), stream: g.files.tok.NewStream(true), stop: stopWords{words: c.stop}, out: c.out}
		if first == nil {
			first = q
		} else {
			first.forks = append(first.forks, q)
		}
	}
	return first
}

// choice is what an answer says of one sequence.
type choice struct {
	Index   int          `json:"index"`
	Text    *string      `json:"text,omitempty"`
	Message *chatMessage `json:"message,omitempty"`
	Delta   *chatMessage `json:"delta,omitempty"`
	Logs    any          `json:"logprobs"`
	Finish  any          `json:"finish_reason"`
}

// chatMessage is a message, or a part of one.
type chatMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// textAnswer is an answer, or a part of one.
type textAnswer struct {
	ID      string     `json:"id"`
	Object  string     `json:"object"`
	Created int64      `json:"created"`
	Model   string     `json:"model"`
	Choices []choice   `json:"choices"`
	Usage   *textUsage `json:"usage,omitempty"`
}

// textUsage counts tokens.
type textUsage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

// used counts the tokens of the request.
func (c *completion) used() *textUsage {
	u := &textUsage{Completion: c.total()}
	for _, p := range c.prompts {
		u.Prompt += len(p)
	}
	u.Total = u.Prompt + u.Completion
	return u
}

// head is the part that all answers to a request have alike.
func (c *completion) head(part string) textAnswer {
	a := textAnswer{ID: newID("cmpl-"), Object: "text_completion", Created: c.start.Unix(), Model: c.model.name, Choices: []choice{}}
	if c.chat {
		a.ID, a.Object = newID("chatcmpl-"), "chat.completion"+part
	}
	return a
}

// each calls f for every event until all sequences have ended.
func (c *completion) each(f func(e event) error) error {
	for open := len(c.drawn); open > 0; {
		for _, e := range c.out.take() {
			if e.err != nil {
				return e.err
			}
			c.drawn[e.index]++
			if e.finish != "" {
				open--
			}
			if err := f(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// answerWhole writes the answer when all sequences have ended.
func (c *completion) answerWhole() error {
	texts := make([]string, len(c.drawn))
	ends := make([]string, len(c.drawn))
	logs := make([]*textLogs, len(c.drawn))
	for i := range logs {
		logs[i] = c.newLogs()
	}
	err := c.each(func(e event) error {
		logs[e.index].add(e, len(texts[e.index]))
		texts[e.index] += e.text
		ends[e.index] = e.finish
		return nil
	})
	if err != nil {
		return err
	}
	a := c.head("")
	for i, text := range texts {
		o := choice{Index: i, Logs: logs[i].form(), Finish: ends[i]}
		if c.chat {
			o.Message = &chatMessage{"assistant", &text}
		} else {
			o.Text = &text
		}
		a.Choices = append(a.Choices, o)
	}
	a.Usage = c.used()
	return answerJSON(c.w, http.StatusOK, a)
}
