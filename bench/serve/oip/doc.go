// Package oip is the messages and the service of infer.proto, as the tools of
// gRPC for Go write them. They need protoc, protoc-gen-go and
// protoc-gen-go-grpc in PATH:
//
//	go generate ./serve/oip
package oip

//go:generate protoc -I . --go_out=. --go_opt=paths=source_relative,Minfer.proto=github.com/tenure-go/tenure/bench/serve/oip --go-grpc_out=. --go-grpc_opt=paths=source_relative,Minfer.proto=github.com/tenure-go/tenure/bench/serve/oip infer.proto
