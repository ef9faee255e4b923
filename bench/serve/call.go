package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tenure-go/tenure/bench/serve/oip"
)

// request is one that is sent again and again.
type request struct {
	model string
	shape []int64
	data  []byte
	size  int // bytes of the answer's tensor
}

// numbers are the bytes of n numbers between 0 and 1.
func numbers(n int) []byte {
	data := make([]byte, 0, 4*n)
	for i := range n {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(i%251)/251))
	}
	return data
}

// caller sends a request and returns the tensor of the answer, which is valid
// until its next call, and the code of HTTP. It belongs to one goroutine.
type caller func(context.Context) (tensor []byte, code int, err error)

// callers make one for each client.
type callers func() caller

// overRPC makes callers that share a connection, as clients of gRPC do.
func overRPC(address string, q *request) (callers, func(), error) {
	c, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostMessage), grpc.MaxCallSendMsgSize(mostMessage)))
	if err != nil {
		return nil, nil, err
	}
	client := oip.NewGRPCInferenceServiceClient(c)
	message := &oip.ModelInferRequest{
		ModelName:        q.model,
		Inputs:           []*oip.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: q.shape}},
		RawInputContents: [][]byte{q.data},
	}
	call := func(ctx context.Context) ([]byte, int, error) {
		answer, err := client.ModelInfer(ctx, message)
		if err != nil {
			return nil, codeOf(err), err
		}
		if len(answer.RawOutputContents) != 1 {
			return nil, 0, fmt.Errorf("got %d tensors, want one", len(answer.RawOutputContents))
		}
		return answer.RawOutputContents[0], http.StatusOK, nil
	}
	return func() caller { return call }, func() { _ = c.Close() }, nil
}

// overHTTP makes callers with binary tensors, whose connections are kept.
func overHTTP(address string, q *request) (callers, func()) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true}
	client := &http.Client{Transport: transport}
	shape := strings.ReplaceAll(strings.Trim(fmt.Sprint(q.shape), "[]"), " ", ",")
	text := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[%s],"parameters":{"binary_data_size":%d}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}`, shape, len(q.data))
	body := append([]byte(text), q.data...)
	head := http.Header{"Inference-Header-Content-Length": {strconv.Itoa(len(text))}}
	url := "http://" + address + "/v2/models/" + q.model + "/infer"
	return func() caller {
		var answer bytes.Buffer // grows once
		return func(ctx context.Context) ([]byte, int, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return nil, 0, err
			}
			r.Header = head
			got, err := client.Do(r)
			if err != nil {
				return nil, 0, err
			}
			defer got.Body.Close()
			answer.Reset()
			answer.Grow(int(max(got.ContentLength, 0)) + bytes.MinRead)
			if _, err := io.Copy(&answer, got.Body); err != nil {
				return nil, 0, err
			}
			if got.StatusCode != http.StatusOK {
				return nil, got.StatusCode, fmt.Errorf("%s: got %s: %s", url, got.Status, answer.Bytes())
			}
			n, err := strconv.Atoi(got.Header.Get("Inference-Header-Content-Length"))
			if err != nil || n > answer.Len() {
				return nil, 0, fmt.Errorf("%s: got an answer of %d bytes, %d of them JSON", url, answer.Len(), n)
			}
			return answer.Bytes()[n:], http.StatusOK, nil
		}
	}, transport.CloseIdleConnections
}
