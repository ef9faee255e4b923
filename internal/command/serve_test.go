package command

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// serving runs tenure serve until the test ends, when it has to end in order,
// and returns its first line, and its address.
func serving(t *testing.T, args ...string) (line, url string) {
	t.Helper()
	memorytest.Check(t)
	ctx, cancel := context.WithCancel(context.Background())
	r, w := io.Pipe()
	var stderr bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- static.execute(ctx, append([]string{"serve", "--address", "127.0.0.1:0", "--threads", "1", "--memory", "256MiB"}, args...), w, &stderr)
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadString('\n')
	t.Cleanup(func() {
		cancel()
		if got := <-code; got != 0 {
			t.Errorf("got exit code %d: %s", got, &stderr)
		}
	})
	m := regexp.MustCompile(`https?://\S+:\d+`).FindString(line)
	if err != nil || m == "" {
		t.Fatalf("got %q, %v, want a line with an address; %s", line, err, &stderr)
	}
	return line, m
}

func TestServe(t *testing.T) {
	line, url := serving(t, "../../examples/digits", "--batch", "8", "--server-name", "triton")
	if !regexp.MustCompile(`^digits 1 at http://127\.0\.0\.1:\d+; .* promised of 256 MiB; interrupt to end\n$`).MatchString(line) {
		t.Errorf("got %q", line)
	}
	body := `{"inputs":[{"name":"image","datatype":"FP32","shape":[1,1,8,8],"data":[` + strings.TrimSuffix(strings.Repeat("0.5,", 64), ",") + `]}]}`
	defer http.DefaultClient.CloseIdleConnections()
	for path, want := range map[string]string{"/v2": `"name":"triton"`, "/v2/models/digits/config": `"max_batch_size":8`, "/v2/models/digits/infer": `"outputs":[{"name":"probabilities","datatype":"FP32","shape":[1,10],"data":[0.17`} {
		method := "GET"
		if strings.HasSuffix(path, "infer") {
			method = "POST"
		}
		r, _ := http.NewRequest(method, url+path, strings.NewReader(body))
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(a.Body)
		a.Body.Close()
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: got %s, %v, want %s", path, text, err, want)
		}
	}
}

// TestServeText wants the example's model to write.
func TestServeText(t *testing.T) {
	_, url := serving(t, "../../examples/generate")
	defer http.DefaultClient.CloseIdleConnections()
	body := `{"model":"generate","prompt":"A tensor","max_tokens":12,"temperature":0}`
	a, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil || !regexp.MustCompile(`"choices":\[\{"index":0,"text":"[^"]{12,}","logprobs":null,"finish_reason":"length"`).Match(text) {
		t.Errorf("got %s, %v, want a text", text, err)
	}
}

// writeCertificate writes a certificate of that number and its key.
func writeCertificate(t *testing.T, cert, key string, number int64) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := x509.Certificate{SerialNumber: big.NewInt(number), Subject: pkix.Name{CommonName: "test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	for path, b := range map[string]*pem.Block{key: {Type: "EC PRIVATE KEY", Bytes: secret}, cert: {Type: "CERTIFICATE", Bytes: der}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestServeTLS wants HTTPS with a token, and a new certificate without a new
// start.
func TestServeTLS(t *testing.T) {
	dir := t.TempDir()
	cert, key, token := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "token")
	writeCertificate(t, cert, key, 1)
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url := serving(t, "../../examples/digits", "--tls-cert", cert, "--tls-key", key, "--token-file", token)
	ask := func(bearer string) (code int, serial string) {
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
		r, _ := http.NewRequest("GET", url+"/v2", nil)
		r.Header.Set("Authorization", bearer)
		a, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		a.Body.Close()
		return a.StatusCode, a.TLS.PeerCertificates[0].SerialNumber.String()
	}
	if code, serial := ask("Bearer secret"); code != 200 || serial != "1" {
		t.Errorf("got %d with certificate %s, want 200 with 1", code, serial)
	}
	if code, _ := ask(""); code != 401 {
		t.Errorf("without a token: got %d, want 401", code)
	}
	writeCertificate(t, cert, key, 2)
	if err := os.Chtimes(cert, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if code, serial := ask("Bearer secret"); code != 200 || serial != "2" {
		t.Errorf("got %d with certificate %s, want 200 with the new one", code, serial)
	}
	if err := os.WriteFile(cert, []byte("no certificate"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, serial := ask("Bearer secret"); code != 200 || serial != "2" {
		t.Errorf("got %d with certificate %s, want the old one while the new one is not whole", code, serial)
	}
}

// callRPC asks over gRPC whether the server lives, and returns the status and
// the answer.
func callRPC(t *testing.T, tr *http.Transport, url, bearer string) (status string, answer []byte) {
	t.Helper()
	r, _ := http.NewRequest("POST", url+"/inference.GRPCInferenceService/ModelReady", strings.NewReader("\x00\x00\x00\x00\x08\x0a\x06digits"))
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Authorization", bearer)
	defer tr.CloseIdleConnections()
	a, err := (&http.Client{Transport: tr}).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	answer, err = io.ReadAll(a.Body)
	if err != nil {
		t.Error(err)
	}
	return a.Trailer.Get("Grpc-Status"), answer
}

// TestServeRPC wants gRPC and HTTP at both addresses, and with TLS.
func TestServeRPC(t *testing.T) {
	line, url := serving(t, "../../examples/digits", "--grpc-address", "127.0.0.1:0", "--shared-memory")
	urls := regexp.MustCompile(`^digits 1 at (http://127\.0\.0\.1:\d+) and (http://127\.0\.0\.1:\d+); `).FindStringSubmatch(line)
	if len(urls) != 3 || urls[1] != url || urls[2] == url {
		t.Fatalf("got %q, want two addresses", line)
	}
	var plain http.Protocols
	plain.SetUnencryptedHTTP2(true)
	for _, url := range urls[1:] {
		if status, answer := callRPC(t, &http.Transport{Protocols: &plain}, url, ""); status != "0" || string(answer) != "\x00\x00\x00\x00\x02\x08\x01" {
			t.Errorf("%s: got the status %s and %q", url, status, answer)
		}
		a, err := http.Get(url + "/v2")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(a.Body)
		a.Body.Close()
		if !strings.Contains(string(text), "system_shared_memory") {
			t.Errorf("%s: got %s", url, text)
		}
	}
	http.DefaultClient.CloseIdleConnections()

	dir := t.TempDir()
	cert, key, token := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "token")
	writeCertificate(t, cert, key, 1)
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, url = serving(t, "../../examples/digits", "--tls-cert", cert, "--tls-key", key, "--token-file", token)
	for bearer, want := range map[string]string{"Bearer secret": "0", "": "16"} {
		tr := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
		if status, _ := callRPC(t, tr, url, bearer); status != want {
			t.Errorf("with TLS and %q: got the status %s, want %s", bearer, status, want)
		}
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]int64{"1": 1, "1000B": 1000, "3KiB": 3 << 10, "64MiB": 64 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "0": 0, "": 0, "2GB": 0, "-1": 0, "1.5GiB": 0, "99999999999GiB": 0} {
		got, err := parseSize("--memory", text)
		if got != want || (err == nil) != (want > 0) {
			t.Errorf("%q: got %d, %v, want %s", text, got, err, fmt.Sprint(want))
		}
	}
}
