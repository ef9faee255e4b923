package ortdiff_test

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/dtype"
)

// python finds a Python that has ONNX Runtime: that of $TENURE_PYTHON, or else
// of the system, or the one that .ci/run makes.
func python(t *testing.T, module string) string {
	t.Helper()
	candidates := []string{"python3"}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append(candidates, filepath.Join(cache, "go-build", "tenure-python", "bin", "python"))
	}
	if name := os.Getenv("TENURE_PYTHON"); name != "" {
		candidates = []string{name}
	}
	var tried []string
	for _, name := range candidates {
		out, err := exec.Command(name, "-c", "import "+module).CombinedOutput()
		if err == nil {
			return name
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		tried = append(tried, fmt.Sprintf("%s: %v %s", name, err, lines[len(lines)-1]))
	}
	t.Skipf("no Python with %s (TENURE_PYTHON names one that has it): %s", module, strings.Join(tried, "; "))
	return ""
}

// reference is a Python process that runs models with ONNX Runtime.
type reference struct {
	python string
	script string // in testdata; "": that of ONNX Runtime
	args   []string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
}

// refused is what ONNX Runtime says of a model that it does not run.
type refused struct{ text string }

func (r *refused) Error() string { return r.text }

// answerTime is how long ONNX Runtime may take for a model.
const answerTime = 20 * time.Second

func (r *reference) start() error {
	r.cmd = exec.Command(r.python, append([]string{filepath.Join("testdata", cmp.Or(r.script, "reference.py"))}, r.args...)...)
	r.cmd.Env = append(os.Environ(), "ALLOW_RELEASED_ONNX_OPSET_ONLY=0", "OMP_NUM_THREADS=1")
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	r.out = bufio.NewReader(out)
	return r.cmd.Start()
}

// stop ends the process.
func (r *reference) stop() {
	if r.cmd == nil {
		return
	}
	r.in.Close()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait() // killed
	r.cmd = nil
}

// run gives the outputs of a model by name. A model that ends the process is
// refused.
func (r *reference) run(file []byte, inputs []*value) (map[string]*value, error) {
	if r.cmd == nil {
		if err := r.start(); err != nil {
			return nil, err
		}
	}
	w := binary.LittleEndian.AppendUint32(nil, uint32(len(file)))
	w = append(w, file...)
	count := len(w)
	w = append(w, 0, 0, 0, 0)
	n := uint32(0)
	for _, v := range inputs {
		if !v.constant {
			w, n = v.send(w), n+1
		}
	}
	binary.LittleEndian.PutUint32(w[count:], n)
	process := r.cmd.Process
	timer := time.AfterFunc(answerTime, func() { _ = process.Kill() })
	defer timer.Stop()
	if _, err := r.in.Write(w); err != nil {
		r.stop()
		return nil, &refused{fmt.Sprintf("the process died before the model: %v", err)}
	}
	outputs, err := r.answer()
	var no *refused
	if err != nil && !errors.As(err, &no) {
		r.stop()
		return nil, &refused{fmt.Sprintf("the process died: %v", err)}
	}
	return outputs, err
}

func (v *value) send(w []byte) []byte {
	put := binary.LittleEndian.AppendUint32
	w = append(put(w, uint32(len(v.name))), v.name...)
	w = put(put(w, uint32(v.dt.ONNX())), uint32(len(v.dims)))
	for _, d := range v.dims {
		w = binary.LittleEndian.AppendUint64(w, uint64(d))
	}
	return append(binary.LittleEndian.AppendUint64(w, uint64(len(v.data))), v.data...)
}

func (r *reference) answer() (map[string]*value, error) {
	var err error
	bytes := func(n int) []byte {
		b := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(r.out, b)
		}
		return b
	}
	u32 := func() int { return int(binary.LittleEndian.Uint32(bytes(4))) }
	u64 := func() int { return int(binary.LittleEndian.Uint64(bytes(8))) }
	status, n := u32(), u32()
	if status != 0 {
		text := string(bytes(n))
		if err != nil {
			return nil, err
		}
		return nil, &refused{text}
	}
	outputs := map[string]*value{}
	for range n {
		v := &value{name: string(bytes(u32()))}
		code, rank := u32(), u32()
		v.dims = make([]int, rank)
		for i := range v.dims {
			v.dims[i] = u64()
		}
		v.data = bytes(u64())
		if err != nil {
			return nil, err
		}
		if v.dt, err = dtype.FromONNX(int32(code)); err != nil {
			return nil, &refused{err.Error()}
		}
		outputs[v.name] = v
	}
	return outputs, err
}
