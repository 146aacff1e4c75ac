module github.com/krm-function-runner/function-runner/services/image-resolver

go 1.26.0

replace github.com/krm-function-runner/function-runner/libs => ../../libs
