// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package registries_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// connect returns a connection to a service of the system.
func (sys *system) connect(t *testing.T, service, port string) *grpc.ClientConn {
	t.Helper()
	return suite.Connect(t, s.ServiceAddress(suite.Context(t), t, sys.services, service, port))
}

// answers reports whether an evaluation got an answer that is not about the system itself, which
// has just started: Services' rules arrive a moment after their pods.
func answers(err error) error {
	if status.Code(err) == codes.Unavailable {
		return err
	}
	return nil
}

// soon bounds the time until a caller gets an error: it is a part of the time that a pod may take to become ready
// (5 minutes), after which each error would come. How long a kubelet takes is the machine's matter.
const soon = 4 * time.Minute

// refused checks that an evaluation fails soon, with the refusing server's texts, and without any
// password.
func refused(t *testing.T, conn *grpc.ClientConn, image, words string, passwords ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(suite.Context(t), soon)
	defer cancel()
	start := time.Now()
	err := suite.SetNamespace(ctx, conn, image)
	t.Logf("after %v: %v", time.Since(start).Round(time.Millisecond), err)
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), words) {
		t.Errorf("%s: got %v, want FailedPrecondition that says %q within %v", image, err, words, soon)
	}
	for _, password := range passwords {
		if err != nil && strings.Contains(err.Error(), password) {
			t.Errorf("the error contains a password: %v", err)
		}
	}
}
