module github.com/krm-function-runner/function-runner/services/pod-manager

go 1.26.0

require (
	github.com/google/go-cmp v0.7.0
	github.com/krm-function-runner/function-runner/libs v0.0.0
	google.golang.org/protobuf v1.36.11
)

require (
	github.com/kelseyhightower/envconfig v1.4.0 // indirect
	golang.org/x/net v0.50.0 // indirect
	golang.org/x/sys v0.41.0 // indirect
	golang.org/x/text v0.34.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260209200024-4cfbd4190f57 // indirect
	google.golang.org/grpc v1.79.1 // indirect
)

replace github.com/krm-function-runner/function-runner/libs => ../../libs
