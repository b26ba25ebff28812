// Package indexerpb is the generated code of the indexer's gRPC service,
// kv_indexer.proto beside this file.
//
// It is generated with protoc 3.21.12, protoc-gen-go and protoc-gen-go-grpc:
// see the go:generate line. Messages are not safe for concurrent use while they
// are changed.
package indexerpb

//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative kv_indexer.proto
