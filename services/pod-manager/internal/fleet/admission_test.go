// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/libs/lease"
)

// TestPodsThatAdmissionRefuses has an admission policy refuse pods: callers get its message at once, and the
// Kubernetes API gets few requests.
func TestPodsThatAdmissionRefuses(t *testing.T) {
	s := usual()
	s.Replicas = 1
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		defer w.end()
		wait(10 * time.Second)
		const message = "ValidatingAdmissionPolicy 'function-images' denied request: the registry is not listed"
		refuse := func(err error) { w.replicas[0].link.Refuse("create pods", err) }
		refuse(apierrors.NewForbidden(corev1.Resource("pods"), "fn", errors.New(message)))
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			held, err := w.replicas[0].leaseFor(ctx, &lease.Open{Image: image(0)})
			if err == nil {
				held.Finish(lease.Done, "")
			}
			return err
		}
		begin, before := time.Now(), w.server.Requests("create pods")
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				if err := call(); fault.Of(err) != fault.Precondition || !strings.Contains(err.Error(), message) {
					t.Errorf("a caller got %v of class %v, want the policy's message", err, fault.Of(err))
				}
			})
		}
		callers.Wait()
		if took := time.Since(begin); took > time.Second {
			t.Errorf("50 callers had their answers after %s", took)
		}
		for time.Since(begin) < 10*time.Minute {
			if err := call(); err == nil || !strings.Contains(err.Error(), message) {
				t.Fatalf("a later caller got %v, want the policy's message", err)
			}
			wait(time.Second)
		}
		if n := w.server.Requests("create pods") - before; n < 2 || n > 40 {
			t.Errorf("%d pods were requested in ten minutes of callers: want one after each backoff", n)
		}
		before = w.server.Requests("create pods")
		wait(time.Hour)
		if n := w.server.Requests("create pods") - before; n > 0 {
			t.Errorf("%d pods were requested without callers", n)
		}
		refuse(nil)
		if err := call(); err != nil {
			t.Errorf("the policy permits the image now, and a caller got %v", err)
		}
	})
}

// TestReplicaWithoutTokenSendsCallersOn has the Kubernetes API reject the token of a function's owner, as after the
// owner's own pod was deleted with force. The owner tells callers to ask another replica, which serves them.
func TestReplicaWithoutTokenSendsCallersOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, usual())
		defer w.end()
		wait(10 * time.Second)
		owner := w.owner(image(0))
		owner.link.Refuse("create pods", apierrors.NewUnauthorized("the token's pod is gone"))
		begin := time.Now()
		if _, err := owner.leaseFor(t.Context(), &lease.Open{Image: image(0)}); !lease.IsElsewhere(err) {
			t.Errorf("the owner's caller got %v, want to be told to ask another replica", err)
		}
		held, err := w.lease(t.Context(), &lease.Open{Image: image(0)})
		if err != nil {
			t.Fatal(err)
		}
		held.Finish(lease.Done, "")
		if took := time.Since(begin); took > 5*time.Second || held.by == owner.name {
			t.Errorf("%s granted the lease after %s, want another replica than %s at once", held.by, took, owner.name)
		}
	})
}
