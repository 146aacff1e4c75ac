module github.com/krm-function-runner/function-runner/test

go 1.26.0

require google.golang.org/grpc v1.79.1

require (
	golang.org/x/sys v0.49.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260209200024-4cfbd4190f57 // indirect
)

require (
	github.com/krm-function-runner/function-runner/libs v0.0.0
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/protobuf v1.36.12-0.20260120151049-f2248ac996af // indirect
)

replace github.com/krm-function-runner/function-runner/libs => ../libs
