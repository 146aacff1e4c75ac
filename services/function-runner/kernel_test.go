// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main_test

import (
	"testing"

	"github.com/krm-function-runner/function-runner/libs/testing/confinetest"
	"github.com/krm-function-runner/function-runner/libs/testing/freeport"
	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// TestKernelsThatCannotConfine starts the real program.
func TestKernelsThatCannotConfine(t *testing.T) {
	confinetest.Run(t, confinetest.Program{
		Path: gobuild.Program(t, ".", "."),
		Args: []string{"--port", freeport.Choose(t), "--disable-runtimes=pod", "--config", "../../functions/config.yaml"},
	})
}
