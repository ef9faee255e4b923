package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	_ "net/http/pprof" // for the bytes that it allocates
	"os"

	"google.golang.org/grpc"

	"github.com/tenure-go/tenure/bench/serve/oip"
)

// asPlain is the environment variable that makes the command the server without
// Tenure.
const asPlain = "TENURE_BENCH_PLAIN"

// mostMessage is the largest message of either side.
const mostMessage = 64 << 20

// plain answers as the models echo and take do, without running anything: what
// remains is gRPC.
type plain struct {
	oip.UnimplementedGRPCInferenceServiceServer
}

// ModelInfer returns the bytes of the message that came, or the first ones.
func (plain) ModelInfer(_ context.Context, q *oip.ModelInferRequest) (*oip.ModelInferResponse, error) {
	if len(q.Inputs) != 1 || len(q.RawInputContents) != 1 {
		return nil, fmt.Errorf("got %d inputs and %d tensors, want one of each", len(q.Inputs), len(q.RawInputContents))
	}
	data := q.RawInputContents[0]
	if q.ModelName == "take" {
		data = data[:min(len(data), 4*taken)]
	}
	return &oip.ModelInferResponse{
		ModelName: q.ModelName, ModelVersion: "1", Id: q.Id,
		Outputs:           []*oip.ModelInferResponse_InferOutputTensor{{Name: "y", Datatype: "FP32", Shape: []int64{int64(len(data) / 4)}}},
		RawOutputContents: [][]byte{data},
	}, nil
}

// servePlainIfAsked makes the process the server, which prints its addresses
// and ends when it is killed.
func servePlainIfAsked() {
	if os.Getenv(asPlain) == "" {
		return
	}
	calls, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	profiles, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(profiles, nil)) }()
	s := grpc.NewServer(grpc.MaxRecvMsgSize(mostMessage), grpc.MaxSendMsgSize(mostMessage))
	oip.RegisterGRPCInferenceServiceServer(s, plain{})
	fmt.Printf("listening at http://%s, http://%s\n", calls.Addr(), profiles.Addr())
	log.Fatal(s.Serve(calls))
}
