// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package deploy_test

import (
	"path"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// movingTag is how long a tag is fresh: shorter than the tests.
const movingTag = 5 * time.Second

// remembered are the images in the open registry whose functions' results are remembered.
func remembered(t *testing.T) string { return s.Registry(t, "open").Host + "/panels" }

// events are what no alert is about and panels show: a tag that moves, results that are remembered, and a caller
// without a certificate.
func (p place) events(t *testing.T) {
	t.Helper()
	ctx := suite.Context(t)
	conn, image := p.caller(t), path.Join(remembered(t), "moving:v1")
	imagecopy.Push(t, inPod(t), image, nil)
	for range 2 { // the second one is remembered
		if err := suite.SetNamespace(ctx, conn, image, grpc.WaitForReady(true)); err != nil {
			t.Fatal(err)
		}
	}
	imagecopy.Push(t, s.Registry(t, "open").Host+"/test/sleep:v1", image, nil)
	for range 4 {
		wait(ctx, movingTag/2)
		_ = suite.SetNamespace(ctx, conn, image) // by the former image, or the next one
	}
	if suite.SetNamespace(ctx, p.secureCaller(t, ""), setNamespace, grpc.WaitForReady(true)) == nil {
		t.Error("a caller without a certificate was answered")
	}
}
