//go:build !js

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// script plays the page: it starts the module, opens the model, reads one
// picture, and shows that a wrong one is an error of JavaScript.
const script = `
const fs = require("fs");
const [glue, wasm, model, picture] = process.argv.slice(2);
require(glue);
const ready = new Promise((resolve) => { globalThis.pageReady = resolve; });
const go = new Go();
(async () => {
  const page = await WebAssembly.instantiate(fs.readFileSync(wasm), go.importObject);
  go.run(page.instance);
  await ready;
  const points = JSON.parse(picture);
  try { readDigit(points) } catch (err) { console.log("before:", err.message) }
  loadModel(new Uint8Array(fs.readFileSync(model)));
  const p = readDigit(new Float32Array(points));
  console.log("digit:", p.indexOf(Math.max(...p)), Math.max(...p) > 0.9);
  try { readDigit(new Float32Array(3)) } catch (err) { console.log("wrong:", err.message) }
  process.exit(0);
})();
`

// seven is the sample 7.png of the digits example in 8x8 points.
const seven = "[0,0,0.1255,0.8118,1,0.8745,0.06275,0,0,0,0.6863,0.749,0.4392,1,0.1882,0,0,0,0.5608,0.1882,0.1255,1,0.1882,0,0,0,0,0,0.5608,0.6863,0,0,0,0,0.1255,0.6863,0.9373,0.8118,0.1882,0,0,0,0.251,0.9373,1,0.8118,0.1882,0,0,0,0,0.8745,0.502,0,0,0,0,0,0.3137,0.9373,0.251,0,0,0]"

var wasm = flag.Bool("wasm", false, "build the page's module, which compiles everything for WebAssembly, and run it")

func TestPage(t *testing.T) {
	if !*wasm {
		t.Skip("compiles everything for WebAssembly: go test ./examples/browser -wasm, as .ci/run does")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the page's half is not run: no node (apt-get install nodejs)")
	}
	dir := t.TempDir()
	module, glue, err := build(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "page.cjs")
	if err := os.WriteFile(file, []byte(script), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(node, file, glue, module, filepath.Join("..", "digits", "digits.onnx"), seven).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"before: readDigit: want loadModel before it\n", "digit: 7 true\n", "wrong: of: got 3 elements for shape [1,1,8,8], want 64"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got %s, want %q", out, want)
		}
	}
}
