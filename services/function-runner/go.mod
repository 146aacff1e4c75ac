module github.com/krm-function-runner/function-runner/services/function-runner

go 1.26.0

require (
	github.com/krm-function-runner/function-runner/libs v0.0.0
	github.com/krm-function-runner/function-runner/services/gateway v0.0.0
	github.com/krm-function-runner/function-runner/services/image-resolver v0.0.0
	github.com/krm-function-runner/function-runner/services/pod-manager v0.0.0
)

replace (
	github.com/krm-function-runner/function-runner/libs => ../../libs
	github.com/krm-function-runner/function-runner/services/gateway => ../gateway
	github.com/krm-function-runner/function-runner/services/image-resolver => ../image-resolver
	github.com/krm-function-runner/function-runner/services/pod-manager => ../pod-manager
)
