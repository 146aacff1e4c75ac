module github.com/krm-function-runner/function-runner/services/pod-manager

go 1.26.0

require github.com/krm-function-runner/function-runner/libs v0.0.0

require github.com/kelseyhightower/envconfig v1.4.0 // indirect

replace github.com/krm-function-runner/function-runner/libs => ../../libs
