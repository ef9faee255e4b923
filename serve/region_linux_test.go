package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/serve/internal/grpc"
)

// sharedFile makes shared memory with that content, and returns its key.
func sharedFile(t *testing.T, data []byte) (key string, file *os.File) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("shared memory is a file on Linux alone")
	}
	f, err := os.CreateTemp("/dev/shm", "tenure-test-")
	if err != nil {
		t.Skip("no shared memory: ", err)
	}
	t.Cleanup(func() { f.Close(); os.Remove(f.Name()) })
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	return "/" + filepath.Base(f.Name()), f
}

// TestRegions passes tensors in shared memory, by HTTP and by gRPC.
func TestRegions(t *testing.T) {
	in := floatBytes([]float32{1, 2, 3, 4, 5, 6, 7, 8})
	key, file := sharedFile(t, append(append(make([]byte, 100), in...), make([]byte, 200)...))
	_, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling(), "text.onnx": identity(onnxtest.String)})}, SharedMemory: true, Memory: 1 << 30})
	url := h.URL + "/v2/systemsharedmemory"
	wantCode(t, post(t, url+"/region/r/register", fmt.Sprintf(`{"key":%q,"offset":100,"byte_size":232}`, key), nil), 200, "")
	status := fmt.Sprintf(`{"name":"r","key":%q,"offset":100,"byte_size":232}`, key)
	wantCode(t, get(t, url+"/status"), 200, "["+status+"]")
	wantCode(t, get(t, url+"/region/r/status"), 200, "["+status+"]")
	wantCode(t, get(t, url+"/region/q/status"), 404, "Unable to find system shared memory region: 'q'")
	if got := invoke(t, h.URL, inference+"SystemSharedMemoryStatus", `{}`); fmt.Sprint(got.messages) != fmt.Sprintf("[map[regions:map[r:map[byte_size:232 key:%s name:r offset:100]]]]", key) {
		t.Errorf("got %v", got)
	}
	wantStatus(t, invoke(t, h.URL, inference+"SystemSharedMemoryRegister", fmt.Sprintf(`{"name":"r","key":%q,"byte_size":4}`, key)), grpc.AlreadyExists, "shared memory region 'r' already in manager")

	read := func(at int, want []byte) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := file.ReadAt(got, int64(at)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %x, %v in the region, want %x", got, err, want)
		}
	}
	doubled := floatBytes([]float32{2, 4, 6, 8, 10, 12, 14, 16})
	x := `{"inputs":[{"name":"x","datatype":"FP32","shape":[2,4],"parameters":{"shared_memory_region":"r","shared_memory_byte_size":32}}],"outputs":[{"name":"y","parameters":{"shared_memory_region":"r","shared_memory_offset":%d,"shared_memory_byte_size":64}}]}`
	got := post(t, h.URL+"/v2/models/double/infer", fmt.Sprintf(x, 40), nil)
	// Parameters would be taken for those of binary data by one client.
	wantCode(t, got, 200, `"outputs":[{"name":"y","datatype":"FP32","shape":[2,4]}]`)
	read(140, doubled)
	p := `{"name":%q,%s"parameters":{"shared_memory_region":{"string_param":"r"},"shared_memory_offset":{"int64_param":%d},"shared_memory_byte_size":{"int64_param":%d}}}`
	call := func(in, out string) called {
		return invoke(t, h.URL, inference+"ModelInfer", `{"model_name":"double","inputs":[`+in+`],"outputs":[`+out+`]}`)
	}
	rows := `"datatype":"FP32","shape":[2,4],`
	answer := call(fmt.Sprintf(p, "x", rows, 0, 32), fmt.Sprintf(p, "y", "", 150, 32))
	if raw := fmt.Sprint(answer.messages); answer.code != 0 || !strings.Contains(raw, "raw_output_contents:[[]]") {
		t.Errorf("got %+v, want one entry without bytes", answer)
	}
	read(250, doubled)

	// Strings are there as in binary data.
	if _, err := file.WriteAt([]byte{2, 0, 0, 0, 'h', 'i', 0, 0, 0, 0}, 100); err != nil {
		t.Fatal(err)
	}
	text := invoke(t, h.URL, inference+"ModelInfer", `{"model_name":"text","inputs":[`+fmt.Sprintf(p, "x", `"datatype":"BYTES","shape":[2],`, 0, 10)+`]}`)
	if fmt.Sprint(text.messages[0]["raw_output_contents"]) != "[[2 0 0 0 104 105 0 0 0 0]]" {
		t.Errorf("got %v", text)
	}
	for want, c := range map[string]called{
		"unexpected total byte size 28 for input 'x', expecting 32": call(fmt.Sprintf(p, "x", rows, 0, 28), ""),
		"Invalid offset + byte size for shared memory region: 'r'":  call(fmt.Sprintf(p, "x", rows, 201, 32), ""),
		"want at most its 232 bytes":                                call(fmt.Sprintf(p, "x", rows, int64(1)<<62, 32), ""),
		"should be at least 32 bytes, got 16":                       call(fmt.Sprintf(p, "x", rows, 0, 32), fmt.Sprintf(p, "y", "", 0, 16)),
		"output 'y': Invalid offset":                                call(fmt.Sprintf(p, "x", rows, 0, 32), fmt.Sprintf(p, "y", "", 232, 1)),
		"shared_memory_offset: got -1":                              call(fmt.Sprintf(p, "x", rows, -1, 32), ""),
	} {
		wantStatus(t, c, grpc.InvalidArgument, want)
	}
	// A client may take the memory away; nothing is written behind its end.
	if err := file.Truncate(110); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, call(fmt.Sprintf(p, "x", rows, 0, 32), ""), grpc.InvalidArgument, "it was truncated")
	full := `{"name":"x","datatype":"FP32","shape":[1,4],"contents":{"fp32_contents":[1,2,3,4]}}`
	wantStatus(t, call(full, fmt.Sprintf(p, "y", "", 0, 32)), grpc.InvalidArgument, "it was truncated")
	if info, _ := file.Stat(); info.Size() != 110 {
		t.Errorf("got %d bytes, want the 110 that the client left", info.Size())
	}
	wantCode(t, post(t, url+"/region/r/unregister", "", nil), 200, "")
	wantCode(t, post(t, url+"/unregister", "", nil), 200, "")
	wantStatus(t, call(fmt.Sprintf(p, "x", rows, 0, 32), ""), grpc.NotFound, "Unable to find system shared memory region: 'r'")
	wantCode(t, get(t, url+"/status"), 200, "[]")
}

// TestRegionInUse forgets a region while a request uses it, which goes on.
func TestRegionInUse(t *testing.T) {
	key, file := sharedFile(t, make([]byte, 64))
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, SharedMemory: true, Memory: 1 << 30})
	wantCode(t, post(t, h.URL+"/v2/systemsharedmemory/region/r/register", fmt.Sprintf(`{"key":%q,"byte_size":64}`, key), nil), 200, "")
	free := occupy(t, s, "double")
	done := make(chan reply, 1)
	go func() {
		done <- post(t, h.URL+"/v2/models/double/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,4],"data":[1,2,3,4]}],"outputs":[{"name":"y","parameters":{"shared_memory_region":"r","shared_memory_byte_size":16}}]}`, nil)
	}()
	until(t, "the request is under way", func() bool { return !isFree(s) })
	r := s.regions.by["r"]
	wantCode(t, post(t, h.URL+"/v2/systemsharedmemory/unregister", "", nil), 200, "")
	free()
	wantCode(t, <-done, 200, `"shape":[1,4]}`)
	got := make([]byte, 16)
	if _, err := file.ReadAt(got, 0); err != nil || !bytes.Equal(got, floatBytes([]float32{2, 4, 6, 8})) {
		t.Errorf("got %x, %v", got, err)
	}
	until(t, "its file is closed", func() bool { _, err := r.file.Stat(); return err != nil })
}

// TestWrongRegions wants no file opened but shared memory of the server's user.
func TestWrongRegions(t *testing.T) {
	key, _ := sharedFile(t, make([]byte, 64))
	s, h := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, SharedMemory: true, Memory: 1 << 30})
	link := "/dev/shm" + key + "-link"
	if err := os.Symlink("/etc/hostname", link); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(link)
	pipe := "/dev/shm" + key + "-pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(pipe)
	for text, want := range map[string]string{
		`{"key":"/../../etc/passwd","byte_size":4}`:                              "want one without slashes",
		`{"key":"..","byte_size":4}`:                                             "want one without slashes",
		`{"key":"","byte_size":4}`:                                               "want one without slashes",
		`{"key":"/","byte_size":4}`:                                              "want one without slashes",
		`{"key":"a\u0000b","byte_size":4}`:                                       "want one without slashes",
		`{"key":"` + strings.Repeat("x", 256) + `","byte_size":4}`:               "want one without slashes",
		`{"key":"/tenure-test-nothing","byte_size":4}`:                           "no such file",
		`{"key":"` + key + `-link","byte_size":4}`:                               "Unable to open shared memory region: 'r': too many levels of symbolic links",
		`{"key":"` + key + `-pipe","byte_size":4}`:                               "got something that is no shared memory",
		`{"key":"` + key + `","byte_size":65}`:                                   "want at most the 64 bytes that it has",
		`{"key":"` + key + `","offset":1,"byte_size":64}`:                        "want at most the 64 bytes that it has",
		`{"key":"` + key + `","offset":9223372036854775807,"byte_size":64}`:      "want at most the 64 bytes",
		`{"key":"` + key + `","offset":-1,"byte_size":4}`:                        "Invalid offset for shared memory region: 'r'",
		`{"key":"` + key + `","byte_size":0}`:                                    "Invalid offset for shared memory region: 'r'",
		`{"key":"` + key + `","byte_size":-4}`:                                   "Invalid offset",
		`{"key":"` + key + `","byte_size":"4"}`:                                  "cannot unmarshal",
		`{"raw_handle":{"b64":"AAAA"},"key":"/x","byte_size":18446744073709551}`: "no such file",
	} {
		got := post(t, h.URL+"/v2/systemsharedmemory/region/r/register", text, nil)
		if got.code != 400 || !strings.Contains(got.text, want) {
			t.Errorf("%s: got %d and %s, want 400 and %q", text, got.code, got.text, want)
		}
	}
	// A client elsewhere has other memory under the name.
	w := &nowhere{header: http.Header{}, code: 200}
	r := asCall(t, inference+"SystemSharedMemoryRegister", frame(encode(t, inference+"SystemSharedMemoryRegister", fmt.Sprintf(`{"name":"r","key":%q,"byte_size":4}`, key))))
	r.RemoteAddr = "192.0.2.1:1234"
	s.ServeHTTP(w, r)
	if got := w.header.Get(http.TrailerPrefix + "Grpc-Message"); !strings.Contains(got, "from another machine") {
		t.Errorf("got %q, want a refusal", got)
	}
	wantStatus(t, invoke(t, h.URL, inference+"SystemSharedMemoryRegister", fmt.Sprintf(`{"name":"r","key":%q,"offset":18446744073709551615,"byte_size":4}`, key)), grpc.InvalidArgument, "Invalid offset")
	wantStatus(t, invoke(t, h.URL, inference+"CudaSharedMemoryRegister", `{"name":"c"}`), grpc.InvalidArgument, "failed to register CUDA shared memory region: 'c', GPUs not supported")
	wantStatus(t, invoke(t, h.URL, inference+"CudaSharedMemoryUnregister", `{}`), grpc.OK, "")
	wantStatus(t, invoke(t, h.URL, inference+"CudaSharedMemoryStatus", `{}`), grpc.OK, "")
	wantStatus(t, invoke(t, h.URL, inference+"CudaSharedMemoryStatus", `{"name":"c"}`), grpc.NotFound, "Unable to find cuda")
	if len(s.regions.by) != 0 {
		t.Errorf("got %d regions, want none", len(s.regions.by))
	}
	_, off := start(t, Config{Paths: []string{write(t, map[string][]byte{"double.onnx": doubling()})}, Memory: 1 << 30})
	wantCode(t, post(t, off.URL+"/v2/systemsharedmemory/region/r/register", fmt.Sprintf(`{"key":%q,"byte_size":64}`, key), nil), 501, "system shared memory is not used here")
	wantCode(t, post(t, off.URL+"/v2/systemsharedmemory/unregister", "", nil), 200, "")
	if text := get(t, off.URL+"/v2").text; strings.Contains(text, "system_shared_memory") {
		t.Errorf("got %s, want no extension that is not there", text)
	}
}
