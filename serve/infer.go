package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/serve/internal/oip"
	"github.com/tenure-go/tenure/tensor"
)

// leastWidth is the least number of bytes for each string of a text input. A
// plan is made for each width: they are powers of two.
const leastWidth = 16

// request is a request for inference on its way.
type request struct {
	*oip.Request
	model   *model
	body    *body
	inputs  []*oip.Input // in the model's order
	outputs []output     // that are to be answered
	ingress *claim
	job     *job
	raw     bool  // the body is one tensor
	single  bool  // the body is JSON alone
	length  int64 // of the JSON in front of binary tensors
}

// output is an output of the model, as the client wants it.
type output struct {
	oip.Output
	index int // among the model's
}

// infer answers a request for inference.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) (err error) {
	start := time.Now()
	b, err := s.openBody(w, r)
	if err != nil {
		return err
	}
	defer func() { // last, when the request holds nothing any more
		if err != nil {
			b.discard()
		}
	}()
	m, err := s.modelOf(r)
	if err != nil {
		return err
	}
	used := true
	defer func() {
		if used {
			m.done()
		}
	}()
	q := &request{model: m, body: b, ingress: &claim{}, job: &job{done: make(chan struct{})}}
	defer func() {
		if err != nil {
			m.stats.answered(0, time.Since(start), times{}, err)
		}
	}()
	if err := m.queue.enter(); err != nil {
		s.rejected.count(err)
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.base, func() { cancel(ErrClosed) })()
	queued := false
	defer func() {
		if !queued {
			m.queue.leave()
		}
		q.ingress.release()
		q.job.release()
	}()
	if err := q.read(ctx, s, r); err != nil {
		s.rejected.count(err)
		return err
	}
	read := time.Since(start)
	q.ingress.release() // the text is not needed any more
	for i := range q.Inputs {
		q.Inputs[i].Data = nil
	}
	queued = true
	if err := q.await(ctx); err != nil {
		s.rejected.count(err)
		return err
	}
	used = false
	m.done() // the outputs have bytes of their own
	q.job.times.input += read
	err = q.answer(w)
	if err == nil {
		m.stats.answered(q.job.rows, time.Since(start), q.job.times, nil)
	}
	return err
}

// read reads a request up to the tensors, once these are promised.
func (q *request) read(ctx context.Context, s *Server, r *http.Request) error {
	wait, cancel := context.WithTimeoutCause(ctx, s.config.Patience, fmt.Errorf("no memory was free for %v: %w", s.config.Patience, ErrBusy))
	defer cancel()
	if err := q.readHead(wait, s, r); err != nil {
		return err
	}
	if err := q.match(); err != nil {
		return err
	}
	m, j := q.model, q.job
	j.shapes = make([][]int, len(m.inputs))
	for i, in := range q.inputs {
		j.shapes[i] = in.Shape
	}
	var err error
	late := m.text
	if !late {
		if j.plan, err = m.planFor(wait, j.shapes); errors.Is(err, tenure.ErrUnsupported) {
			late = true // the values of inputs decide sizes
		} else if err != nil {
			return err
		}
	}
	if late {
		err = q.readLate(wait)
	} else if j.claim, err = m.claim(wait, j.plan); err == nil {
		err = q.readTensors()
	}
	if err != nil {
		return err
	}
	if err := q.body.end(); err != nil {
		return err
	}
	if m.config.DynamicBatching != nil && j.shapes[0][0] > 0 {
		rest := make([][]int, len(j.shapes))
		for i, s := range j.shapes {
			rest[i] = s[1:]
		}
		j.rows, j.key = j.shapes[0][0], key(rest)
	}
	return nil
}

// readHead reads the JSON of the request.
func (q *request) readHead(ctx context.Context, s *Server, r *http.Request) error {
	length, err := oip.HeaderLength(r.Header.Get("Inference-Header-Content-Length"))
	if err != nil {
		return err
	}
	known := q.body.known
	switch {
	case length == 0:
		q.raw = true
		q.Request = &oip.Request{Binary: true}
		return s.ingress.acquire(ctx, q.ingress)
	case length < 0:
		q.single = true
		length = known
	case length > s.config.MaxBody, known >= 0 && length > known:
		return fmt.Errorf("Inference-Header-Content-Length: got %d, want at most the %d bytes of the body: %w", length, known, oip.ErrMessage)
	}
	q.ingress.bytes, q.length = max(0, length), length
	if err := s.ingress.acquire(ctx, q.ingress); err != nil {
		return err
	}
	var text []byte
	if length < 0 {
		text, err = q.body.rest(q.ingress, s.config.MaxBody)
	} else {
		text = make([]byte, length)
		err = q.body.full(text)
	}
	if err != nil {
		return err
	}
	q.Request, err = oip.ParseRequest(text)
	return err
}

// match compares the request with the model.
func (q *request) match() error {
	m := q.model
	if q.raw {
		if err := q.describe(); err != nil {
			return err
		}
	}
	if q.Sequence {
		return fmt.Errorf("got a sequence_id, want none: model '%s' keeps no sequences: %w", m.name, tenure.ErrUnsupported)
	}
	q.inputs = make([]*oip.Input, len(m.inputs))
	for i := range q.Inputs {
		in := &q.Inputs[i]
		at := slices.IndexFunc(m.inputs, func(info tenure.Info) bool { return info.Name == in.Name })
		switch {
		case at < 0:
			return fmt.Errorf("unexpected inference input '%s' for model '%s': %w", in.Name, m.name, tenure.ErrInput)
		case q.inputs[at] != nil:
			return fmt.Errorf("input '%s' is given twice for model '%s': %w", in.Name, m.name, tenure.ErrInput)
		case in.Type != elementType(m.inputs[at]):
			return fmt.Errorf("inference input '%s' data-type is '%s', but model '%s' expects '%s': %w", in.Name, oip.Name(in.Type), m.name, typeName(m.inputs[at]), tenure.ErrInput)
		case in.Data == nil && in.Size < 0, in.Size >= 0 && q.single:
			return fmt.Errorf("input '%s': got no elements: %w", in.Name, oip.ErrMessage)
		}
		q.inputs[at] = in
		if err := q.checkSize(in, m.inputs[at]); err != nil {
			return err
		}
	}
	if err := q.checkSections(); err != nil {
		return err
	}
	for i, in := range q.inputs {
		if in == nil {
			return fmt.Errorf("expected %d inputs but got %d inputs for model '%s': got no '%s': %w", len(m.inputs), len(q.Inputs), m.name, m.inputs[i].Name, tenure.ErrInput)
		}
	}
	return q.chooseOutputs()
}

// checkSize compares the shape of an input with the model's, and the bytes with
// the shape.
func (q *request) checkSize(in *oip.Input, info tenure.Info) error {
	n, err := oip.Elements(in.Shape)
	if err != nil {
		return fmt.Errorf("input '%s': %w", in.Name, err)
	}
	if want := dims(info); info.Shape != nil && (len(want) != len(in.Shape) || !slices.EqualFunc(want, in.Shape, func(a, b int) bool { return a == b || a == -1 })) {
		return fmt.Errorf("unexpected shape for input '%s' for model '%s': expected %v, got %v: %w", in.Name, q.model.name, want, in.Shape, tenure.ErrInput)
	}
	if most := q.model.config.MaxBatchSize; most > 0 && in.Shape[0] > most {
		return fmt.Errorf("inference request batch-size must be <= %d for '%s': got %d: %w", most, q.model.name, in.Shape[0], tenure.ErrInput)
	}
	if in.Size < 0 && int64(n) > int64(len(in.Data)+1)/2 { // an element and a comma take two bytes
		return fmt.Errorf("input '%s': got fewer elements than the %d of the shape %v: %w", in.Name, n, in.Shape, oip.ErrMessage)
	}
	if !info.Text && in.Size >= 0 && in.Size != int64(n)*int64(info.DType.Size()) {
		return fmt.Errorf("unexpected total byte size %d for input '%s', expecting %d: %w", in.Size, in.Name, int64(n)*int64(info.DType.Size()), oip.ErrMessage)
	}
	return nil
}

// checkSections compares the bytes of the binary tensors with those of the
// body, before memory is taken for any of them.
func (q *request) checkSections() error {
	if q.single || q.raw {
		return nil
	}
	left := q.model.server.config.MaxBody
	if q.body.known >= 0 {
		left = q.body.known
	}
	left -= q.length
	for _, in := range q.Inputs {
		if in.Size > left {
			return fmt.Errorf("input '%s': got %d bytes of binary data, want at most the %d that are left of the body: %w", in.Name, in.Size, left, oip.ErrMessage)
		}
		left -= max(0, in.Size)
	}
	if q.body.known >= 0 && left > 0 {
		return fmt.Errorf("got %d bytes behind the tensors of the request, want none: %w", left, oip.ErrMessage)
	}
	return nil
}

// describe makes the input of a body that is one tensor.
func (q *request) describe() error {
	m, n := q.model, q.body.known
	if len(m.inputs) != 1 || n < 0 {
		return fmt.Errorf("got a request without JSON, want that for a model of one input, and with a Content-Length: %w", oip.ErrMessage)
	}
	in := oip.Input{Name: m.inputs[0].Name, Type: elementType(m.inputs[0]), Shape: dims(m.inputs[0]), Size: n}
	size, open := int64(1), -1
	for axis, d := range in.Shape {
		switch {
		case d < 0 && axis == 0 && len(in.Shape) > 1 && m.config.MaxBatchSize > 0:
			in.Shape[0] = 1
		case d < 0 && open >= 0:
			return fmt.Errorf("got a request without JSON, want that for an input with one open dimension at most: %w", oip.ErrMessage)
		case d < 0:
			open = axis
		default:
			size *= int64(d)
		}
	}
	if in.Type != dtype.String {
		size *= int64(in.Type.Size())
	}
	if open >= 0 {
		if in.Type == dtype.String || size == 0 || n%size != 0 {
			return fmt.Errorf("got a request without JSON of %d bytes, want a multiple of %d: %w", n, size, oip.ErrMessage)
		}
		in.Shape[open] = int(n / size)
	}
	q.Inputs = []oip.Input{in}
	return nil
}

// chooseOutputs finds the outputs that the request names; all without names.
func (q *request) chooseOutputs() error {
	m := q.model
	if len(q.Outputs) == 0 {
		for i, info := range m.outputs {
			q.outputs = append(q.outputs, output{oip.Output{Name: info.Name, Binary: q.Binary}, i})
		}
		return nil
	}
	for _, o := range q.Outputs {
		i := slices.IndexFunc(m.outputs, func(info tenure.Info) bool { return info.Name == o.Name })
		switch {
		case i < 0:
			return fmt.Errorf("unexpected inference output '%s' for model '%s': %w", o.Name, m.name, tenure.ErrInput)
		case slices.ContainsFunc(q.outputs, func(have output) bool { return have.index == i }):
			return fmt.Errorf("output '%s' is named twice: %w", o.Name, oip.ErrMessage)
		case o.Classes > 0 && (m.outputs[i].Text || m.outputs[i].DType == dtype.Bool):
			return fmt.Errorf("output '%s': got classification, want that for numbers: %w", o.Name, oip.ErrMessage)
		}
		q.outputs = append(q.outputs, output{o, i})
	}
	return nil
}

// readTensors reads the tensors, each into its own bytes.
func (q *request) readTensors() error {
	q.job.inputs = make([]*tensor.Tensor, len(q.inputs))
	for i := range q.Inputs { // the order of the body
		at := slices.Index(q.inputs, &q.Inputs[i])
		if err := q.readTensor(at); err != nil {
			return fmt.Errorf("input '%s': %w", q.Inputs[i].Name, err)
		}
	}
	return nil
}

func (q *request) readTensor(i int) error {
	in, d := q.inputs[i], q.model.inputs[i].DType
	x, err := newTensor(d, in.Shape)
	if err != nil {
		return err
	}
	q.job.inputs[i] = x
	b, err := x.Lock()
	if err != nil {
		return err
	}
	defer b.Release()
	if in.Size < 0 {
		return oip.Fill(b.Data, d, x.NumElements(), in.Data)
	}
	if err := q.body.full(b.Data); err != nil {
		return err
	}
	if d == dtype.Bool {
		for i, v := range b.Data {
			if v > 1 {
				b.Data[i] = 1
			}
		}
	}
	return nil
}

// readLate reads the tensors of a request whose plan depends on what they
// contain. Until it is known they belong to the memory of requests' text, and
// nobody waits who holds some of that.
func (q *request) readLate(ctx context.Context) error {
	m, j := q.model, q.job
	var bytes int64
	for i, in := range q.inputs {
		n, _ := oip.Elements(in.Shape)
		switch {
		case in.Size >= 0:
			bytes += in.Size
		case m.inputs[i].Text:
			bytes += int64(len(in.Data))
		}
		if !m.inputs[i].Text {
			bytes += int64(n*m.inputs[i].DType.Size()) + page
		}
	}
	if most := m.server.ingress.budget; bytes > most {
		return &neverFits{bytes, most}
	}
	if !q.ingress.tryGrow(bytes) {
		return fmt.Errorf("the request does not fit into the memory of those that are read: %w", ErrBusy)
	}
	j.inputs = make([]*tensor.Tensor, len(q.inputs))
	for i := range q.Inputs {
		at := slices.Index(q.inputs, &q.Inputs[i])
		var err error
		if m.inputs[at].Text {
			err = q.readText(at)
		} else {
			err = q.readTensor(at)
		}
		if err != nil {
			return fmt.Errorf("input '%s': %w", q.Inputs[i].Name, err)
		}
	}
	var err error
	if j.plan, err = m.planFor(ctx, j.shapes); errors.Is(err, tenure.ErrUnsupported) {
		j.plan, err = m.planOf(ctx, j.inputs)
	}
	if err != nil {
		return err
	}
	j.claim, err = m.claim(ctx, j.plan)
	return err
}

// planOf returns the figures of a run with these inputs.
func (m *model) planOf(ctx context.Context, in []*tensor.Tensor) (*planned, error) {
	named := tenure.Inputs{}
	for i, x := range in {
		named[m.inputs[i].Name] = x
	}
	select {
	case m.planner <- struct{}{}:
		defer func() { <-m.planner }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	d, err := guarded(func() (p *planned, err error) {
		d, err := m.session.PlanFor(ctx, named)
		if err == nil {
			p = m.figures(d)
		}
		return p, err
	})
	return d, err
}

// readText reads the elements of an input of text into rows of one width.
func (q *request) readText(i int) (err error) {
	in := q.inputs[i]
	n, _ := oip.Elements(in.Shape)
	var list []string
	if in.Size < 0 {
		list, err = oip.Strings(n, in.Data)
	} else {
		data := make([]byte, in.Size)
		if err = q.body.full(data); err == nil {
			list, err = oip.BinaryStrings(n, data)
		}
	}
	if err != nil {
		return err
	}
	width := leastWidth
	for _, s := range list {
		for width < len(s) {
			width *= 2
		}
	}
	if most := q.model.server.ingress.budget; int64(n) > most/int64(width) || !q.ingress.tryGrow(int64(n*width)+page) {
		return fmt.Errorf("got %d strings of up to %d bytes, which do not fit into the memory of requests that are read: %w", n, width, ErrBusy)
	}
	q.job.shapes[i] = append(slices.Clone(in.Shape), width)
	q.job.inputs[i], err = tensor.OfStringsWide(width, list, in.Shape...)
	if err != nil {
		return fmt.Errorf("%w: %w", err, oip.ErrMessage)
	}
	return nil
}

// timeout is how long the request may take from now on, its run included; 0 if
// nobody says so.
func (q *request) timeout() time.Duration {
	b := q.model.config.DynamicBatching
	if b == nil || b.DefaultQueuePolicy == nil {
		return q.Timeout
	}
	p := b.DefaultQueuePolicy
	standard := time.Duration(p.DefaultTimeout) * time.Microsecond
	if standard > 0 && (!p.AllowTimeoutOverride || q.Timeout == 0 || q.Timeout > standard) {
		return standard
	}
	return q.Timeout
}

// level is the priority of the request among those of the model.
func (q *request) level() uint64 {
	b := q.model.config.DynamicBatching
	switch {
	case b == nil || b.PriorityLevels == 0:
		return 0
	case q.Priority == 0 || q.Priority > b.PriorityLevels:
		return b.DefaultPriorityLevel
	}
	return q.Priority
}

// await waits for the run of the job. When the request's own time has passed
// the run stops; the server's patience ends with its beginning.
func (q *request) await(ctx context.Context) error {
	j, m := q.job, q.model
	j.priority, j.arrived, j.ctx = q.level(), time.Now(), ctx
	if d := q.timeout(); d > 0 {
		var cancel context.CancelFunc
		j.ctx, cancel = context.WithTimeoutCause(ctx, d, fmt.Errorf("%w after %v", ErrTimeout, d))
		defer cancel()
	}
	patience := m.server.config.Patience
	wait, cancel := context.WithTimeoutCause(j.ctx, patience, fmt.Errorf("%w: no run was free for %v", ErrTimeout, patience))
	defer cancel()
	m.queue.put(j)
	select {
	case <-j.done:
		return j.err
	case <-wait.Done():
	}
	if m.queue.remove(j) {
		return context.Cause(wait)
	}
	<-j.done
	return j.err
}

// answer writes the outputs.
func (q *request) answer(w http.ResponseWriter) error {
	head := oip.Answer{Model: q.model.name, Version: strconv.Itoa(q.model.version), ID: q.ID}
	var sections [][]byte
	for _, o := range q.outputs {
		x := q.job.outputs[o.index]
		b, err := x.Use()
		if err != nil {
			return fmt.Errorf("output '%s': %w", o.Name, err)
		}
		defer b.Release()
		result, err := resultOf(o.Output, q.model.outputs[o.index], x, b.Data)
		if err != nil {
			return fmt.Errorf("output '%s': %w", o.Name, err)
		}
		if o.Binary {
			if result.Type == dtype.String {
				for _, s := range result.Strings {
					result.Data = oip.AppendBinaryString(result.Data, s)
				}
			}
			result.Size = int64(len(result.Data))
			sections = append(sections, result.Data)
		}
		head.Outputs = append(head.Outputs, result)
	}
	return q.send(w, &head, sections)
}
