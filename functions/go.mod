module github.com/krm-function-runner/function-runner/functions

go 1.26.0
