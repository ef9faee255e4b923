// Command serve answers requests for inference over HTTP and gRPC until it is
// interrupted, within a gigabyte of memory.
//
//	go run ./examples/serve examples/digits/digits.onnx
//	curl localhost:8000/v2/models/digits/infer -d "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[1,1,8,8],\"data\":[$(seq -s, 1 64)]}]}"
//
// docs/serve.md describes requests, and what the server does where memory,
// time or a client's patience is short. Command tenure serve has a flag for
// every decision.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"

	"github.com/tenure-go/tenure/serve"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := serve.ListenAndServe(ctx, "localhost:8000", config(os.Args[1:])); err != nil {
		log.Fatal("serve: ", err)
	}
}

func config(models []string) serve.Config { return serve.Config{Paths: models, Memory: 1 << 30} }
