package serve

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/tenure-go/tenure/serve/sampling"
	"github.com/tenure-go/tenure/tokenizer"
)

// events writes parts of an answer as they come, as server-sent events.
type events struct {
	answer
	begun bool
}

func (e *events) send(v any) error {
	var text bytes.Buffer
	text.WriteString("data: ")
	if s, ok := v.(string); ok {
		text.WriteString(s + "\n")
	} else {
		j := json.NewEncoder(&text)
		j.SetEscapeHTML(false)
		if err := j.Encode(v); err != nil {
			return err
		}
	}
	text.WriteByte('\n')
	if !e.begun {
		e.begun = true
		h := e.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no") // proxies must not collect the parts
		e.w.WriteHeader(http.StatusOK)
	}
	if _, err := e.Write(text.Bytes()); err != nil {
		return errStopped
	}
	if err := e.conn.Flush(); err != nil {
		return errStopped
	}
	return nil
}

// answerParts writes the text of all sequences as it comes. An error after the
// first part is an event of its own.
func (c *completion) answerParts() error {
	out := &events{answer: answer{w: c.w, conn: http.NewResponseController(c.w), stall: c.server.config.Stall}}
	head := c.head(".chunk")
	lengths := make([]int, len(c.drawn))
	greeted := make([]bool, len(c.drawn))
	err := c.each(func(e event) error {
		l := c.newLogs()
		l.add(e, lengths[e.index])
		lengths[e.index] += len(e.text)
		o := choice{Index: e.index, Logs: l.form()}
		part := head
		if c.chat && !greeted[e.index] {
			greeted[e.index] = true
			empty := ""
			part.Choices = []choice{{Index: e.index, Delta: &chatMessage{"assistant", &empty}}}
			if err := out.send(part); err != nil {
				return err
			}
		}
		if e.text == "" && e.finish == "" && o.Logs == nil {
			return nil // it is held back
		}
		if e.finish != "" {
			o.Finish = e.finish
		}
		switch {
		case !c.chat:
			o.Text = &e.text
		case e.text == "" && o.Logs == nil:
			o.Delta = &chatMessage{}
		default:
			o.Delta = &chatMessage{Content: &e.text}
		}
		part.Choices = []choice{o}
		return out.send(part)
	})
	if err != nil {
		if !out.begun {
			return err
		}
		body, code := errorBody(err)
		if code >= http.StatusInternalServerError {
			c.server.config.Log.Error("a stream failed", "model", c.model.name, "error", err)
		}
		_ = out.send(body) // a client that has gone needs none
		return errStopped
	}
	if c.usage {
		head.Usage = c.used()
		if err := out.send(head); err != nil {
			return err
		}
	}
	return out.send("[DONE]")
}

// textLogs collects logarithms of probabilities; nil where nobody asks.
type textLogs struct {
	tok     *tokenizer.Tokenizer
	chat    bool
	content []toldToken
	tokens  []string
	logs    []float64
	tops    []map[string]float64
	offsets []int
}

// tokenLog is a token with its probability.
type tokenLog struct {
	Token string  `json:"token"`
	Log   float64 `json:"logprob"`
	Bytes []int   `json:"bytes"`
}

// toldToken is one of a chat, with those that were likeliest in its place.
type toldToken struct {
	tokenLog
	Top []tokenLog `json:"top_logprobs"`
}

func (c *completion) newLogs() *textLogs {
	if c.logs < 0 {
		return nil
	}
	return &textLogs{tok: c.model.gen.files.tok, chat: c.chat}
}

// least is what is told of a token that the model never draws: JSON has no
// infinity.
const least = -9999

func (l *textLogs) of(p sampling.LogProb) tokenLog {
	t := tokenLog{Token: l.tok.Decode([]int64{p.Token}, false), Log: max(p.LogProb, least)}
	t.Bytes = []int{}
	for _, b := range []byte(t.Token) {
		t.Bytes = append(t.Bytes, int(b))
	}
	return t
}

// add adds the token of an event, whose text begins at a place.
func (l *textLogs) add(e event, at int) {
	if l == nil || e.log == nil {
		return
	}
	t := toldToken{l.of(*e.log), []tokenLog{}}
	top := map[string]float64{}
	for _, p := range e.top {
		one := l.of(p)
		t.Top = append(t.Top, one)
		top[one.Token] = one.Log
	}
	l.content = append(l.content, t)
	l.tokens, l.logs = append(l.tokens, t.Token), append(l.logs, t.Log)
	l.tops, l.offsets = append(l.tops, top), append(l.offsets, at)
}

// form returns what an answer has of them.
func (l *textLogs) form() any {
	if l == nil || len(l.content) == 0 {
		return nil
	}
	if l.chat {
		return map[string]any{"content": l.content, "refusal": nil}
	}
	return map[string]any{"tokens": l.tokens, "token_logprobs": l.logs, "top_logprobs": l.tops, "text_offset": l.offsets}
}
