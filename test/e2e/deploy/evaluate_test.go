// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// setNamespace is a function that runners have as a local binary.
const setNamespace = "ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.5"

// inPod is the same function under a name without a local binary.
func inPod(t *testing.T) string {
	t.Helper()
	return s.Registry(t, "open").Host + "/krm-functions-catalog/set-namespace:v0.4.5"
}

// caller returns a connection to the function runner at the address of its Service, as Porch has.
func (p place) caller(t *testing.T) *grpc.ClientConn {
	t.Helper()
	return suite.Connect(t, p.address(t))
}

// evaluates checks that the system evaluates a function.
func (p place) evaluates(t *testing.T, image string) {
	t.Helper()
	// The Service's rules may arrive a moment after its pods.
	if err := suite.SetNamespace(suite.Context(t), p.caller(t), image, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
}
