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
	server  *Server
	model   *model // with a use
	message message
	inputs  []*oip.Input // in the model's order
	outputs []output     // that are to be answered
	regions map[string]*region
	ingress *claim
	job     *job
	start   time.Time
	read    time.Duration // that reading it took
	cancel  context.CancelCauseFunc
	stop    func() bool // of the cancellation at the server's end
	entered bool        // it counts among those that wait
}

// message is what a request is read from.
type message interface {
	head(ctx context.Context, q *request) error // reads what stands in front of the tensors
	fit(q *request) error                       // compares the bytes of the tensors with those that are left
	section(in *oip.Input) (int64, error)       // moves to a tensor, in the order of the request, and returns its bytes
	full(dst []byte) error                      // reads bytes of the tensor
	end() error                                 // wants the end of the request
}

// output is an output of the model, as the client wants it.
type output struct {
	oip.Output
	index int // among the model's
}

// infer answers a request for inference.
func (s *Server) infer(w http.ResponseWriter, r *http.Request) (err error) {
	q := s.newRequest()
	b, err := s.openBody(w, r)
	if err != nil {
		return err
	}
	defer func() { // last, when the request holds nothing any more
		if err != nil {
			b.discard()
		}
	}()
	if q.model, err = s.useToRun(r.Context(), r.PathValue("model"), r.PathValue("version")); err != nil {
		s.rejected.count(err)
		return err
	}
	q.message = &httpMessage{body: b, header: r.Header.Get("Inference-Header-Content-Length")}
	err = q.begin(r.Context())
	if err == nil {
		err = q.finish(func(head *oip.Answer) error { return q.send(w, head) })
	}
	q.release(err)
	return err
}

func (s *Server) newRequest() *request {
	return &request{server: s, start: time.Now(), ingress: &claim{}, job: &job{done: make(chan struct{})}}
}

// begin admits a request to the queue of its model, and reads it.
func (q *request) begin(ctx context.Context) error {
	s := q.server
	if err := q.model.queue.enter(); err != nil {
		s.rejected.count(err)
		return err
	}
	q.entered = true
	ctx, q.cancel = context.WithCancelCause(ctx)
	q.job.ctx = ctx
	q.stop = context.AfterFunc(s.base, func() { q.cancel(ErrClosed) })
	if err := q.receive(ctx); err != nil {
		s.rejected.count(err)
		return err
	}
	q.read = time.Since(q.start)
	q.ingress.release() // the text is not needed any more
	for i := range q.Inputs {
		q.Inputs[i].Data, q.Inputs[i].Contents = nil, nil
	}
	return nil
}

// finish waits for the run of a request, and sends the answer.
func (q *request) finish(send func(head *oip.Answer) error) error {
	q.entered = false // its run, or its end in the queue, takes it out
	if err := q.await(q.job.ctx); err != nil {
		q.server.rejected.count(err)
		return err
	}
	m := q.model
	q.model = nil
	m.done() // the outputs have bytes of their own
	q.job.times.input += q.read
	err := q.answer(m, send)
	if err == nil {
		m.stats.answered(q.job.rows, time.Since(q.start), q.job.times, nil)
	} else {
		m.stats.answered(0, time.Since(q.start), times{}, err)
	}
	return err
}

// release ends a request: what it holds is free again, and if it failed before
// its answer, with err, that is counted.
func (q *request) release(err error) {
	if q.entered {
		q.model.queue.leave()
	}
	q.ingress.release()
	q.job.release()
	for _, r := range q.regions {
		r.done()
	}
	if q.cancel != nil {
		q.stop()
		q.cancel(nil)
	}
	if q.model != nil {
		if err != nil {
			q.model.stats.answered(0, time.Since(q.start), times{}, err)
		}
		q.model.done()
	}
}

// receive reads a request up to the tensors, and these once they are promised.
func (q *request) receive(ctx context.Context) error {
	wait, cancel := q.server.patient(ctx)
	defer cancel()
	if err := q.message.head(wait, q); err != nil {
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
	if err := q.message.end(); err != nil {
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

// patient bounds how long a request waits for memory.
func (s *Server) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, s.config.Patience, fmt.Errorf("no memory was free for %v: %w", s.config.Patience, ErrBusy))
}

// match compares the request with the model.
func (q *request) match() error {
	m := q.model
	if m.gen != nil {
		return fmt.Errorf("model '%s' generates text: ask /v1/completions; parameters.generate of its configuration makes it one for inference: %w", m.name, tenure.ErrUnsupported)
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
		case in.Data == nil && in.Size < 0 && in.Contents == nil && in.Region == nil:
			return fmt.Errorf("input '%s': got no elements: %w", in.Name, oip.ErrMessage)
		}
		q.inputs[at] = in
		if err := q.checkSize(in, m.inputs[at]); err != nil {
			return err
		}
	}
	if err := q.message.fit(q); err != nil {
		return err
	}
	for i, in := range q.inputs {
		if in == nil {
			return fmt.Errorf("expected %d inputs but got %d inputs for model '%s': got no '%s': %w", len(m.inputs), len(q.Inputs), m.name, m.inputs[i].Name, tenure.ErrInput)
		}
	}
	if err := q.chooseOutputs(); err != nil {
		return err
	}
	return q.useRegions()
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
	size := in.Size
	switch {
	case in.Region != nil:
		size = in.Region.Size
	case in.Contents != nil:
		if err := oip.CheckContents(in.Type, n, in.Contents); err != nil {
			return fmt.Errorf("input '%s': %w", in.Name, err)
		}
	case in.Size < 0 && int64(n) > int64(len(in.Data)+1)/2: // an element and a comma take two bytes
		return fmt.Errorf("input '%s': got fewer elements than the %d of the shape %v: %w", in.Name, n, in.Shape, oip.ErrMessage)
	}
	if !info.Text && size >= 0 && size != int64(n)*int64(info.DType.Size()) {
		return q.unexpectedSize(in, size, int64(n)*int64(info.DType.Size()))
	}
	return nil
}

// unexpectedSize is the error for a tensor of so many bytes.
func (q *request) unexpectedSize(in *oip.Input, got, want int64) error {
	return fmt.Errorf("unexpected total byte size %d for input '%s', expecting %d: %w", got, in.Name, want, oip.ErrMessage)
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
	switch {
	case in.Region != nil:
		err = q.regions[in.Region.Name].read(b.Data, in.Region.Offset)
	case in.Contents != nil:
		return oip.FillContents(b.Data, d, x.NumElements(), in.Contents)
	case in.Size < 0:
		return oip.Fill(b.Data, d, x.NumElements(), in.Data)
	default:
		var size int64
		if size, err = q.message.section(in); err == nil && size != int64(len(b.Data)) {
			err = q.unexpectedSize(in, size, int64(len(b.Data)))
		}
		if err == nil {
			err = q.message.full(b.Data)
		}
	}
	if err != nil {
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
		case in.Region != nil:
			bytes += in.Region.Size
		case in.Size >= 0:
			bytes += in.Size
		case m.inputs[i].Text:
			bytes += int64(len(in.Data) + len(in.Contents))
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
	switch {
	case in.Contents != nil:
		list, err = oip.ContentsStrings(n, in.Contents)
	case in.Region == nil && in.Size < 0:
		list, err = oip.Strings(n, in.Data)
	default:
		var data []byte
		if data, err = q.readStrings(in); err == nil {
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

// readStrings reads the bytes of BYTES. They were promised as far as the head
// says how many they are.
func (q *request) readStrings(in *oip.Input) (data []byte, err error) {
	if in.Region != nil {
		data = make([]byte, in.Region.Size)
		return data, q.regions[in.Region.Name].read(data, in.Region.Offset)
	}
	size, err := q.message.section(in)
	if err != nil {
		return nil, err
	}
	if size > in.Size && !q.ingress.tryGrow(size-in.Size) {
		return nil, fmt.Errorf("got %d bytes, which do not fit into the memory of requests that are read: %w", size, ErrBusy)
	}
	data = make([]byte, size)
	return data, q.message.full(data)
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
	wait, cancel := context.WithTimeoutCause(j.ctx, patience, fmt.Errorf("%w: no run was free for %v: %w", ErrTimeout, patience, ErrBusy))
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

// answer writes the outputs that are for shared memory there, and sends the
// others.
func (q *request) answer(m *model, send func(head *oip.Answer) error) error {
	head := oip.Answer{Model: m.name, Version: strconv.Itoa(m.version), ID: q.ID}
	for _, o := range q.outputs {
		x := q.job.outputs[o.index]
		b, err := x.Use()
		if err != nil {
			return fmt.Errorf("output '%s': %w", o.Name, err)
		}
		defer b.Release()
		result, err := resultOf(o.Output, m.outputs[o.index], x, b.Data)
		if err != nil {
			return fmt.Errorf("output '%s': %w", o.Name, err)
		}
		if (o.Binary || o.Region != nil) && result.Type == dtype.String {
			for _, s := range result.Strings {
				result.Data = oip.AppendBinaryString(result.Data, s)
			}
		}
		switch {
		case o.Region != nil:
			if err := q.regions[o.Region.Name].write(result.Data, o.Region); err != nil {
				return fmt.Errorf("output '%s': %w", o.Name, err)
			}
			result.Away, result.Data = true, nil
		case o.Binary:
			result.Size = int64(len(result.Data))
		}
		head.Outputs = append(head.Outputs, result)
	}
	return send(&head)
}
