//go:build !js

// Command browser runs a model inside a web page. It builds the page's half
// for WebAssembly, page.go, and serves it with the model on this machine:
//
//	go run ./examples/browser
//
// Then open the address that it prints and draw a digit. Nothing leaves the
// page: the model runs in it. The module takes 14 MB, compressed 3 MB.
package main

import (
	"embed"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed index.html
var page embed.FS

func main() {
	log.SetFlags(0)
	addr := flag.String("addr", "localhost:8080", "the address to serve on")
	flag.Parse()
	dir, err := os.MkdirTemp("", "tenure-browser")
	if err != nil {
		log.Fatal("browser: ", err)
	}
	err = serve(*addr, dir)
	os.RemoveAll(dir)
	log.Fatal("browser: ", err)
}

// serve builds the module in dir and serves the page until it fails.
func serve(addr, dir string) error {
	module, glue, err := build(dir)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.FileServerFS(page))
	for path, file := range map[string]string{"/page.wasm": module, "/wasm_exec.js": glue, "/digits.onnx": filepath.Join("examples", "digits", "digits.onnx")} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, file) })
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Printf("http://%s\n", l.Addr())
	return http.Serve(l, mux)
}

// build compiles page.go and returns where the module lies, and Go's script
// that starts it.
func build(dir string) (module, glue string, err error) {
	module = filepath.Join(dir, "page.wasm")
	c := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", module, "github.com/tenure-go/tenure/examples/browser")
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", "", fmt.Errorf("building the module: %w\n%s", err, out)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", "", fmt.Errorf("asking for GOROOT: %w", err)
	}
	return module, filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"), nil
}
