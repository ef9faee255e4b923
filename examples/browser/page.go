//go:build js && wasm

// The half of the example that runs in the page.
package main

import (
	"context"
	"fmt"
	"syscall/js"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// main gives the page two functions: loadModel(Uint8Array), which opens an ONNX
// model, and readDigit(Float32Array), which returns its answer for 8x8 points
// as ten probabilities. Both throw an Error where they fail.
func main() {
	var session *tenure.Session
	define("loadModel", func(arg js.Value) (any, error) {
		if session != nil {
			return nil, fmt.Errorf("loadModel: a model is open")
		}
		file := make([]byte, arg.Get("length").Int())
		js.CopyBytesToGo(file, arg)
		m, err := tenure.LoadBytes(file) // file stays: the model's weights lie in it
		if err != nil {
			return nil, err
		}
		session, err = m.NewSession()
		return nil, err
	})
	define("readDigit", func(arg js.Value) (any, error) {
		if session == nil {
			return nil, fmt.Errorf("readDigit: want loadModel before it")
		}
		return read(session, arg)
	})
	js.Global().Call("pageReady")
	select {} // the functions stay for as long as the page does
}

func read(s *tenure.Session, points js.Value) (any, error) {
	image := make([]float32, points.Get("length").Int())
	for i := range image {
		image[i] = float32(points.Index(i).Float())
	}
	x, err := tensor.Of(image, 1, 1, 8, 8)
	if err != nil {
		return nil, err
	}
	defer x.Release()
	out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
	if err != nil {
		return nil, err
	}
	defer out.Release()
	p, err := tensor.Values[float32](out["probabilities"])
	if err != nil {
		return nil, err
	}
	list := make([]any, len(p))
	for i, v := range p {
		list[i] = v
	}
	return js.ValueOf(list), nil
}

// define makes f a function of the page. A wrapper of two lines of JavaScript
// throws the error that it finds in the field "error".
func define(name string, f func(arg js.Value) (any, error)) {
	js.Global().Set(name+"Result", js.FuncOf(func(_ js.Value, args []js.Value) any {
		value, err := f(args[0])
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"value": value}
	}))
	js.Global().Set(name, js.Global().Call("eval", fmt.Sprintf("x => { const r = %sResult(x); if (r.error) throw new Error(r.error); return r.value }", name)))
}
