// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiServer is unreachable for a time from the start, and then gives one answer.
type apiServer struct {
	started time.Time
	away    time.Duration
	answer  *apierrors.StatusError
	garbled bool
}

func (s apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	if time.Since(s.started) < s.away {
		return nil, errors.New("connection refused")
	}
	status := s.answer.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	body, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	if s.garbled {
		body = []byte("<html>")
	}
	code := int(status.Code)
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(body)), Request: request,
	}, nil
}

func TestServerWarmUp(t *testing.T) {
	pods := corev1.Resource("pods")
	noRole := apierrors.NewForbidden(pods, "p", errors.New("cannot create resource"))
	tests := map[string]struct {
		reason string
		server apiServer
		after  time.Duration // from when it was away last
		want   bool          // that it passes
		text   string
	}{
		"just started": {
			"it has not loaded the roles yet",
			apiServer{away: time.Second, answer: noRole},
			9 * time.Second, true, "cannot create resource",
		},
		"no accounts yet": {
			"nor the service accounts",
			apiServer{away: time.Second, answer: apierrors.NewUnauthorized("who is that")},
			time.Second, true, "who is that",
		},
		"behind something": {
			"a proxy answers for it",
			apiServer{away: time.Second, answer: noRole, garbled: true},
			time.Second, true, "Forbidden",
		},
		"started long ago": {
			"its roles are loaded by then",
			apiServer{away: time.Second, answer: noRole},
			10 * time.Second, false, "cannot create resource",
		},
		"was never away": {
			"its roles are loaded, too",
			apiServer{answer: noRole},
			time.Second, false, "cannot create resource",
		},
		"judges by what is given": {
			"that does not change",
			apiServer{away: time.Second, answer: apierrors.NewBadRequest("no name")},
			time.Second, false, "no name",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tc.server.started = time.Now()
				client, err := kubernetes.NewForConfig(&rest.Config{
					Host: "http://kubernetes", Transport: tolerateWarmUp(tc.server), QPS: -1,
				})
				if err != nil {
					t.Fatal(err)
				}
				create := func() error {
					pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
					_, err := client.CoreV1().Pods("fns").Create(t.Context(), pod, metav1.CreateOptions{})
					return err
				}
				if tc.server.away > 0 && !IsTransient(create()) {
					t.Error("that it is away does not pass")
				}
				<-time.After(tc.server.away)
				_ = create()
				<-time.After(tc.after - tc.server.away)
				err = create()
				if IsTransient(err) != tc.want || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("passing is %v for %v, want %v with %q: %s", IsTransient(err), err, tc.want, tc.text, tc.reason)
				}
			})
		})
	}
}
