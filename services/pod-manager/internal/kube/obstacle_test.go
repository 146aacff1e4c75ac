// SPDX-License-Identifier: Apache-2.0

package kube_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

func TestObstacle(t *testing.T) {
	tests := []struct {
		name, reason, text string
		answer             error
		class              fault.Class
	}{
		{
			name: "no rights", answer: apierrors.NewForbidden(pods, "", errors.New("cannot list")),
			class: fault.Precondition, text: "pods is forbidden: cannot list",
			reason: "a user has to grant them",
		},
		{
			name: "no account", answer: apierrors.NewUnauthorized("token expired"),
			class: fault.Unavailable, text: "token expired",
			reason: "the pod was deleted with force; other replicas have tokens of their own",
		},
		{name: "away", answer: errGone, class: fault.Unavailable, text: "connection refused", reason: "it may come back"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{client: client()}
				w.fails("list", "pods", func() error { return tc.answer })
				w.run(t, nil)
				synctest.Wait()
				err := w.Obstacle()
				if err == nil || fault.Of(err) != tc.class || !strings.Contains(err.Error(), tc.text) || isSynced(w) {
					t.Errorf("the obstacle is %v, want %v with %q: %s", err, tc.class, tc.text, tc.reason)
				}
			})
		})
	}
}
