module github.com/tenure-go/tenure/bench

go 1.26.0

require github.com/tenure-go/tenure v0.0.0

require (
	github.com/dmitryikh/leaves v0.0.0-20230708180554-25d19a787328
	github.com/gomlx/gomlx v0.26.0
	golang.org/x/sys v0.49.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/dustin/go-humanize v1.0.1 // indirect
	github.com/ebitengine/purego v0.11.2 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	golang.org/x/exp v0.0.0-20250819193227-8b4c13bb791b // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.44.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	k8s.io/klog/v2 v2.130.1 // indirect
)

replace github.com/tenure-go/tenure => ../
