// Command serve answers HTTP requests with a model: one model, one session, any
// number of clients.
//
//	go run ./examples/serve examples/digits/digits.onnx
//	curl -d "$(printf '[%s0]' $(printf '0,%.0s' {1..63}))" localhost:8080
//
// A request is the first input as JSON numbers in row-major order, the answer
// every output in the same form. It shows the decisions of a service: how many
// runs go on at once and with how many threads each, which memory outputs use,
// which errors are the client's, and how a run ends whose client has
// disconnected. Each run under way has an arena of the session's and makes one
// tensor per input and output; /debug/vars shows all of it as tenure.memory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

const (
	maxBody   = 16 << 20         // bytes of a request
	maxOutput = 64 << 20         // bytes of outputs that are out at a time, with those that wait to be used again
	patience  = 10 * time.Second // for a run, the wait for its turn included
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: serve MODEL.onnx")
	}
	s, err := newService(os.Args[1])
	if err != nil {
		log.Fatal("serve: ", err)
	}
	expvar.Publish("tenure.memory", memory.Var{})
	http.Handle("/", s)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	l, err := net.Listen("tcp", "localhost:8080")
	if err != nil {
		log.Fatal("serve: ", err)
	}
	log.Printf("%s: %v -> %v at http://%s", os.Args[1], s.model.Inputs(), s.model.Outputs(), l.Addr())
	if err := errors.Join(serve(ctx, l, http.DefaultServeMux), s.close()); err != nil {
		log.Fatal("serve: ", err)
	}
}

// serve answers until ctx ends, and returns when every request that has begun
// is answered: until then the handler needs its session.
func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{Handler: h}
	answered := make(chan error, 1)
	context.AfterFunc(ctx, func() {
		wait, cancel := context.WithTimeout(context.Background(), 2*patience)
		defer cancel()
		answered <- server.Shutdown(wait)
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-answered // Serve does not wait for it
}

// service is an http.Handler over a model with one input.
type service struct {
	model   *tenure.Model
	session *tenure.Session
	outputs *memory.Arena
	input   tenure.Info
}

func newService(path string) (*service, error) {
	m, err := tenure.Load(path)
	if err != nil {
		return nil, err
	}
	in := m.Inputs()
	if len(in) != 1 || in[0].DType != dtype.F32 || in[0].Shape == nil {
		return nil, errors.Join(fmt.Errorf("got inputs %v, want one of f32 with known rank", in), m.Close())
	}
	outputs, err := memory.NewArena(maxOutput, memory.IO)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	// Many small runs side by side use the processors better than one run on
	// all of them.
	s, err := m.NewSession(tenure.WithMaxConcurrent(runtime.GOMAXPROCS(0)), tenure.WithThreads(1), tenure.WithOutputsFrom(outputs))
	if err != nil {
		return nil, errors.Join(err, outputs.Close(), m.Close())
	}
	return &service{model: m, session: s, outputs: outputs, input: in[0]}, nil
}

func (s *service) close() error {
	return errors.Join(s.session.Close(), s.outputs.Close(), s.model.Close())
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var numbers []float32
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&numbers); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), patience) // ends, too, when the client hangs up
	defer cancel()
	answer, err := s.run(ctx, numbers)
	switch {
	case err == nil:
		body, err := json.Marshal(answer) // before the header is sent: JSON has no NaN
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			log.Print("serve: ", err)
		}
	case errors.Is(err, tenure.ErrInput), errors.Is(err, tenure.ErrShape):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, tenure.ErrLimit):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// run makes a tensor of the numbers, runs the model on it, and returns the
// outputs by name.
func (s *service) run(ctx context.Context, numbers []float32) (map[string][]float32, error) {
	x, err := tensor.Of(numbers, s.dims(len(numbers))...)
	if err != nil {
		return nil, err
	}
	defer x.Release()
	out, err := s.session.Run(ctx, tenure.Inputs{s.input.Name: x})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	answer := make(map[string][]float32, len(out))
	for name, y := range out {
		if answer[name], err = tensor.Float32s(y); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

// dims are the model's own, with as many samples in the first dimension as
// there are numbers for, if it is open.
func (s *service) dims(numbers int) []int {
	dims, each := make([]int, s.input.Shape.Rank()), 1
	for i := range dims {
		size, known := s.input.Shape.Dim(i).Size()
		if !known {
			size = 1
		}
		dims[i] = size
		each *= size
	}
	if len(dims) > 0 && each > 0 && numbers%each == 0 {
		if _, known := s.input.Shape.Dim(0).Size(); !known {
			dims[0] = numbers / each
		}
	}
	return dims
}
