package serve

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
	"github.com/tenure-go/tenure/tensor"
)

// embedder makes vectors of texts with an encoder.
type embedder struct {
	files   *textFiles
	output  string
	pooling string // mean, cls or last; "" where the model has one vector for a text
	raw     bool
	length  int
}

// newEmbedder looks at a model without states. The error says why it is no
// encoder of text.
func newEmbedder(d *tenure.Description, f *textFiles, t textSettings) (*embedder, error) {
	e := &embedder{files: f, raw: t.raw, length: or(t.length, or(f.length, 512))}
	for _, i := range d.Inputs {
		if !slices.Contains(textInputs, i.Name) || i.DType != dtype.I64 && i.DType != dtype.I32 {
			return nil, fmt.Errorf("got the input %s, want input_ids, attention_mask, position_ids or token_type_ids of i64 or i32: %w", i, tenure.ErrUnsupported)
		}
	}
	rank := func(i tenure.Info) int {
		if !i.DType.IsFloat() || i.Shape == nil || i.Name == "logits" {
			return 0
		}
		return i.Shape.Rank()
	}
	for _, name := range []string{"sentence_embedding", "embeddings", "text_embeds"} {
		if at := slices.IndexFunc(d.Outputs, func(i tenure.Info) bool { return i.Name == name && rank(i) == 2 }); at >= 0 && t.pooling == "" {
			e.output = name
			return e, nil
		}
	}
	for _, name := range []string{"last_hidden_state", "token_embeddings", ""} {
		if at := slices.IndexFunc(d.Outputs, func(i tenure.Info) bool { return (i.Name == name || name == "") && rank(i) == 3 }); at >= 0 {
			e.output, e.pooling = d.Outputs[at].Name, or(t.pooling, or(f.pooling, "mean"))
			return e, nil
		}
	}
	return nil, fmt.Errorf("got no output with a vector for each token or text: %w", tenure.ErrUnsupported)
}

// embeddings answers a request for the vectors of texts.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) (err error) {
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
	texts := 0
	defer func() {
		if err != nil {
			s.rejected.count(err)
		}
		m.stats.answered(texts, time.Since(start), times{}, err)
	}()
	if m.embed == nil {
		return &apiError{param: "model", text: fmt.Sprintf("model '%s' makes no embeddings", m.name)}
	}
	q, err := m.parseEmbedding(f)
	if err != nil {
		return err
	}
	list := []embedding{}
	for i, ids := range q.prompts {
		v, err := m.vector(ctx, ids)
		if err != nil {
			return err
		}
		if q.size > len(v) {
			return wrong("dimensions", "got %d, want at most the %d of the model", q.size, len(v))
		}
		if q.size > 0 {
			v = v[:q.size]
		}
		if !m.embed.raw {
			normalise(v)
		}
		list = append(list, embedding{"embedding", i, encodeVector(v, q.form)})
		texts++
	}
	return answerJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list, "model": m.name, "usage": map[string]int{"prompt_tokens": q.tokens, "total_tokens": q.tokens}})
}

// embedding is a vector as an answer has it.
type embedding struct {
	Object string `json:"object"`
	Index  int    `json:"index"`
	Vector any    `json:"embedding"`
}

// embeddingRequest is a request for vectors.
type embeddingRequest struct {
	prompts [][]int64
	tokens  int    // of all prompts
	size    int    // numbers of each vector; 0: all
	form    string // float or base64
}

func (m *model) parseEmbedding(f fields) (q *embeddingRequest, err error) {
	q = &embeddingRequest{form: "float"}
	if _, err := f.take("encoding_format", &q.form, "float or base64"); err != nil {
		return nil, err
	}
	if q.form != "float" && q.form != "base64" {
		return nil, wrong("encoding_format", "got %q, want float or base64", q.form)
	}
	if q.prompts, err = parsePrompts(f, "input", m.embed.files, m.embed.length); err != nil {
		return nil, err
	}
	for _, ids := range q.prompts {
		if len(ids) > m.embed.length {
			return nil, tooLong("input", m.embed.length+1, fmt.Sprintf("%d tokens", len(ids)))
		}
		q.tokens += len(ids)
	}
	given, err := f.take("dimensions", &q.size, "a whole number")
	if err != nil {
		return nil, err
	}
	if given && q.size < 1 {
		return nil, wrong("dimensions", "got %d, want 1 or more", q.size)
	}
	return q, f.free()
}

// encodeVector returns a vector as an answer has it.
func encodeVector(v []float32, form string) any {
	if form == "float" {
		return v
	}
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// normalise divides a vector by its length.
func normalise(v []float32) {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum > 0 {
		for i := range v {
			v[i] = float32(float64(v[i]) / math.Sqrt(sum))
		}
	}
}

// vector runs the model with one text, as a request for inference does: it is
// promised, waits for its run, and shares it where the model's configuration
// says so.
func (m *model) vector(ctx context.Context, ids []int64) (v []float32, err error) {
	if err := m.queue.enter(); err != nil {
		return nil, err
	}
	q := m.server.newRequest()
	q.Request, q.model = &oip.Request{}, m
	queued := false
	defer func() {
		if !queued {
			m.queue.leave()
		}
		q.job.release()
	}()
	if err := q.fillText(ctx, ids); err != nil {
		return nil, err
	}
	queued = true
	if err := q.await(ctx); err != nil {
		return nil, err
	}
	for i, o := range m.outputs {
		if o.Name == m.embed.output {
			return m.embed.pool(q.job.outputs[i], len(ids))
		}
	}
	panic("BUG: an embedder without its output")
}

// fillText makes the inputs of a job: the tokens of a text, without padding.
func (q *request) fillText(ctx context.Context, ids []int64) (err error) {
	m, j := q.model, q.job
	wait, cancel := m.server.patient(ctx)
	defer cancel()
	for range m.inputs {
		j.shapes = append(j.shapes, []int{1, len(ids)})
	}
	if j.plan, err = m.planFor(wait, j.shapes); err != nil {
		return err
	}
	if j.claim, err = m.claim(wait, j.plan); err != nil {
		return err
	}
	for _, info := range m.inputs {
		list := make([]int64, len(ids))
		switch info.Name {
		case "input_ids":
			copy(list, ids)
		case "attention_mask":
			for i := range list {
				list[i] = 1
			}
		case "position_ids":
			for i := range list {
				list[i] = int64(i)
			}
		}
		x, err := integers(info.DType, list, 1, len(ids))
		if err != nil {
			return err
		}
		j.inputs = append(j.inputs, x)
	}
	if m.config.DynamicBatching != nil {
		j.rows, j.key = 1, key([][]int{{len(ids)}})
	}
	return nil
}

// pool makes one vector of those of the tokens.
func (e *embedder) pool(x *tensor.Tensor, tokens int) ([]float32, error) {
	all, err := tensor.Float32s(x)
	if err != nil {
		return nil, err
	}
	s := x.Shape()
	size := s.Size(s.Rank() - 1)
	if len(all) == 0 || s.Rank() == 3 && s.Size(1) != tokens || s.Size(0) != 1 {
		return nil, fmt.Errorf("output %q: got %s for a text of %d tokens, want a vector for each: %w", e.output, s, tokens, tenure.ErrUnsupported)
	}
	switch {
	case s.Rank() == 2 || e.pooling == "cls":
		return all[:size], nil
	case e.pooling == "last":
		return all[len(all)-size:], nil
	}
	v := make([]float32, size)
	for i := range v {
		sum := 0.0
		for t := range tokens {
			sum += float64(all[t*size+i])
		}
		v[i] = float32(sum / float64(tokens))
	}
	return v, nil
}
