package serve

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/serve/internal/grpc"
)

var soakTime = flag.Duration("soak", 5*time.Second, "how long TestSoak goes on")

// soakStall is how long the server of TestSoak waits for a client.
const soakStall = time.Second

// soak is a server with honest clients and others.
type soak struct {
	t    *testing.T
	s    *Server
	url  string
	dir  string
	stop chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex
	counts map[string]int // of what was done
}

// TestSoak lets clients stop, hold connections, die in the middle of a body,
// not read, send garbage, and truncate regions of shared memory, and loads
// models all the while, some from files that a full disk cut short. Honest
// clients beside them get the right answers, and in the end nothing is held.
//
//	go test ./serve -run TestSoak -v -soak 60s
func TestSoak(t *testing.T) {
	dir := write(t, map[string][]byte{"double/1/model.onnx": doubling(), "double/2/model.onnx": doubling(), "wide/1/model.onnx": doubling()})
	server, h := start(t, Config{Paths: []string{dir}, SharedMemory: true, Stall: soakStall, Memory: 64 << 20, MaxBatch: 1 << 16})
	s := &soak{t: t, s: server, url: h.URL, dir: dir, stop: make(chan struct{}), counts: map[string]int{}}
	before := runtime.NumGoroutine()
	for name, act := range map[string]func(*rand.Rand) bool{
		"honest, HTTP": s.honest, "honest, HTTP, another": s.honest, "honest, gRPC": s.honestRPC, "honest, gRPC, another": s.honestRPC,
		"stops": s.stops, "dies": s.dies, "does not read": s.doesNotRead, "garbage, HTTP": s.garbage, "garbage, gRPC": s.garbageRPC,
		"garbage, bytes": s.junk, "truncates": s.truncates, "reload": s.reloads, "disk full": s.diskFull,
	} {
		s.act(name, act)
	}
	select {
	case <-time.After(*soakTime):
	case <-t.Context().Done():
	}
	close(s.stop)
	s.wg.Wait()
	t.Logf("%v", s.counts)
	for name, n := range s.counts {
		if n == 0 && !t.Failed() {
			t.Errorf("%s: got nothing done", name)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	rpcClient.CloseIdleConnections()
	until(t, "nothing is held", func() bool {
		return isFree(server) && server.ingress.figures().used == 0 && server.Memory().Waiting == 0
	})
	until(t, "goroutines have ended", func() bool { return runtime.NumGoroutine() <= before+2 })
	if f := server.Memory(); f.Most > f.Budget {
		t.Errorf("got at most %d bytes promised, want at most the %d of the budget", f.Most, f.Budget)
	}
}

// act repeats something until the end, and counts how often it was done.
func (s *soak) act(name string, f func(*rand.Rand) bool) {
	s.mu.Lock()
	s.counts[name] = 0
	s.mu.Unlock()
	s.wg.Go(func() {
		r := rand.New(rand.NewPCG(11, uint64(len(name))<<8+uint64(name[len(name)-1])))
		n := 0
		for !s.t.Failed() {
			if f(r) {
				n++
			}
			select {
			case <-s.stop:
				s.mu.Lock()
				s.counts[name] = n
				s.mu.Unlock()
				return
			default:
			}
		}
	})
}

// isLate reports whether a request took so long that the server may have taken
// its client for one that stops, because the machine did something else.
func isLate(begin time.Time) bool { return time.Since(begin) > soakStall/2 }

// honest sends a request and wants its answer.
func (s *soak) honest(r *rand.Rand) bool {
	begin, first, n := time.Now(), float32(1+r.IntN(9)), 1+r.IntN(300)
	text, data := row(first, n)
	q, _ := http.NewRequest("POST", s.url+"/v2/models/double/infer", bytes.NewReader(append([]byte(text), data...)))
	q.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)))
	code, header, body, err := answerOf(http.DefaultClient, q)
	at, _ := strconv.Atoi(header.Get("Inference-Header-Content-Length"))
	if err != nil || code != http.StatusOK {
		if !isLate(begin) {
			s.t.Errorf("an honest request: got %d, %s and %v", code, body, err)
		}
		return false
	}
	wantDoubled(s.t, reply{code: code, data: body[at:]}, first, n)
	return true
}

func (s *soak) honestRPC(r *rand.Rand) bool {
	begin, first, n := time.Now(), float32(1+r.IntN(9)), 1+r.IntN(300)
	code, message, err := s.call(frame(rawRow(s.t, "double", first, n)))
	if err != nil || code != grpc.OK || len(message) < 16*n {
		if !isLate(begin) {
			s.t.Errorf("an honest call: got %v and %v", code, err)
		}
		return false
	}
	wantDoubled(s.t, reply{code: http.StatusOK, data: message[len(message)-16*n:]}, first, n) // the tensor is last
	return true
}

// answerOf sends a request and reads its answer.
func answerOf(c *http.Client, q *http.Request) (code int, header http.Header, body []byte, err error) {
	a, err := c.Do(q)
	if err != nil {
		return 0, nil, nil, err
	}
	defer a.Body.Close()
	body, err = io.ReadAll(a.Body)
	header = a.Header
	for name, v := range a.Trailer {
		header[name] = v
	}
	return a.StatusCode, header, body, err
}

// call calls ModelInfer with a body of any bytes.
func (s *soak) call(body []byte) (code grpc.Code, message []byte, err error) {
	q, err := http.NewRequest("POST", s.url+inference+"ModelInfer", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	q.Header.Set("Content-Type", "application/grpc")
	q.Header.Set("Te", "trailers")
	_, header, message, err := answerOf(rpcClient, q)
	n, bad := strconv.Atoi(header.Get("Grpc-Status"))
	if err == nil {
		err = bad
	}
	return grpc.Code(n), message, err
}

// connect connects without a client that knows HTTP. Where the machine has no
// port left it is nil.
func (s *soak) connect() *net.TCPConn {
	c, err := net.Dial("tcp", s.url[len("http://"):])
	if err != nil {
		return nil
	}
	return c.(*net.TCPConn)
}

// stops sends the beginning of eight requests, and holds the connections until
// the server ends them.
func (s *soak) stops(r *rand.Rand) bool {
	text, data := row(1, 100)
	whole := head(text, len(text)+len(data)) + string(data)
	if r.IntN(2) == 0 {
		whole = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00" // and no call
	}
	var open []net.Conn
	for range 8 {
		if c := s.connect(); c != nil {
			_, _ = io.WriteString(c, whole[:r.IntN(len(whole))])
			open = append(open, c)
		}
	}
	for _, c := range open {
		if r.IntN(2) == 0 {
			_, _ = untilItEnds(c)
		}
		c.Close()
	}
	return len(open) > 0
}

// dies ends a connection with a reset in the middle of a body.
func (s *soak) dies(r *rand.Rand) bool {
	text, data := row(1, 1<<14)
	c := s.connect()
	if c == nil {
		return false
	}
	_, _ = io.WriteString(c, head(text, len(text)+len(data)))
	_, _ = c.Write(data[:r.IntN(len(data))])
	_ = c.SetLinger(0)
	c.Close()
	return true
}

// doesNotRead asks for answers, and reads nothing of them for some time.
func (s *soak) doesNotRead(r *rand.Rand) bool {
	text, data := row(1, 1<<15)
	c := s.connect()
	if c == nil {
		return false
	}
	defer c.Close()
	_ = c.SetReadBuffer(4096)
	_ = c.SetWriteDeadline(time.Now().Add(soakStall))
	for range 1 + r.IntN(4) {
		if _, err := io.WriteString(c, head(text, len(text)+len(data))+string(data)); err != nil {
			return true // the server reads no further request before this one is answered
		}
	}
	time.Sleep(time.Duration(r.IntN(100)) * time.Millisecond)
	return true
}

// garbage changes bytes of a request with a tensor behind JSON.
func (s *soak) garbage(r *rand.Rand) bool {
	text, data := row(1, 2)
	if r.IntN(2) == 0 {
		text, data = `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[[1,2,3,4e3]]}]}`, nil
	}
	body := append([]byte(text), data...)
	for range 1 + r.IntN(4) {
		body[r.IntN(len(text))] = byte(r.Uint32())
	}
	q, _ := http.NewRequest("POST", s.url+"/v2/models/double/infer", bytes.NewReader(body))
	if data != nil {
		q.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)+r.IntN(3)-1))
	}
	begin := time.Now()
	code, _, text2, err := answerOf(http.DefaultClient, q)
	if err == nil && code >= 500 && !isLate(begin) {
		s.t.Errorf("%q: got %d and %s, want a refusal as the client's fault", body, code, text2)
	}
	return err == nil
}

// garbageRPC changes bytes of a call, and lengths of its frame.
func (s *soak) garbageRPC(r *rand.Rand) bool {
	body := frame(rawRow(s.t, "double", 1, 2))
	for range 1 + r.IntN(3) {
		body[5+r.IntN(len(body)-37)] = byte(r.Uint32())
	}
	switch r.IntN(4) {
	case 0:
		binary.BigEndian.PutUint32(body[1:], r.Uint32())
	case 1:
		body = body[:r.IntN(len(body))]
	}
	begin := time.Now()
	code, _, err := s.call(body)
	if err == nil && (code == grpc.Unknown || code == grpc.Unavailable) && !isLate(begin) {
		s.t.Errorf("%x: got code %d, want a refusal as the client's fault", body, code)
	}
	return err == nil
}

// junk sends bytes that are no requests.
func (s *soak) junk(r *rand.Rand) bool {
	c := s.connect()
	if c == nil {
		return false
	}
	defer c.Close()
	bytes := make([]byte, r.IntN(4000))
	for i := range bytes {
		bytes[i] = byte(r.Uint32())
	}
	if r.IntN(2) == 0 {
		_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	}
	_, _ = c.Write(bytes)
	_ = c.CloseWrite()
	_, _ = untilItEnds(c)
	return true
}

// truncates registers a region, and truncates it while requests read and write
// it.
func (s *soak) truncates(r *rand.Rand) bool {
	f, err := os.CreateTemp("/dev/shm", "tenure-soak-")
	if err != nil {
		return true // there is no shared memory
	}
	defer os.Remove(f.Name())
	defer f.Close()
	const rows = 1 << 12
	if err := f.Truncate(32 * rows); err != nil {
		return true
	}
	name := filepath.Base(f.Name())
	ask := func(path, body string) (int, []byte) {
		q, _ := http.NewRequest("POST", s.url+path, bytes.NewReader([]byte(body)))
		code, _, text, _ := answerOf(http.DefaultClient, q)
		return code, text
	}
	begin := time.Now()
	if code, text := ask("/v2/systemsharedmemory/region/"+name+"/register", fmt.Sprintf(`{"key":"/%s","byte_size":%d}`, name, 32*rows)); code != http.StatusOK {
		if !isLate(begin) {
			s.t.Errorf("register: got %d and %s", code, text)
		}
		return false
	}
	body := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%d,4],"parameters":{"shared_memory_region":%q,"shared_memory_byte_size":%d}}],"outputs":[{"name":"y","parameters":{"shared_memory_region":%q,"shared_memory_offset":%d,"shared_memory_byte_size":%d}}]}`,
		rows, name, 16*rows, name, 16*rows, 16*rows)
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range 8 {
				begin := time.Now()
				if code, text := ask("/v2/models/double/infer", body); code != 0 && code != http.StatusOK && code != http.StatusBadRequest && !isLate(begin) {
					s.t.Errorf("a region that is truncated: got %d and %s, want 200 or 400", code, text)
				}
			}
		})
	}
	for range 16 {
		_ = f.Truncate(int64(r.IntN(32 * rows)))
		runtime.Gosched()
		_ = f.Truncate(32 * rows)
	}
	wg.Wait()
	_, _ = ask("/v2/systemsharedmemory/region/"+name+"/unregister", "")
	return true
}

// reloads loads the other version of the model.
func (s *soak) reloads(r *rand.Rand) bool {
	config, err := parseModelConfig(fmt.Appendf(nil, `{"max_batch_size":65536,"dynamic_batching":{},"version_policy":{"specific":{"versions":[%d]}}}`, 1+r.IntN(2)))
	if err == nil {
		err = s.s.Load(s.t.Context(), "double", config)
	}
	if err != nil {
		s.t.Errorf("reload: %v", err)
	}
	return true
}

// diskFull leaves a part of a model's file, as a full disk does, and has it
// loaded: it is an error, and the version that is loaded goes on.
func (s *soak) diskFull(r *rand.Rand) bool {
	whole := doubling()
	dir := filepath.Join(s.dir, "wide", "2")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.onnx"), whole[:r.IntN(len(whole)/2)], 0o600); err != nil {
		s.t.Error(err)
	}
	if err := s.s.Load(s.t.Context(), "wide", nil); err == nil {
		s.t.Error("half of a file: got no error, want one")
	}
	m, err := s.s.use("wide", "")
	if err != nil {
		s.t.Errorf("the version before: %v", err)
		return true
	}
	m.done()
	time.Sleep(5 * time.Millisecond)
	return true
}
