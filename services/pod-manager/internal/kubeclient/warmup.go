// SPDX-License-Identifier: Apache-2.0

package kubeclient

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
)

// warmUp is the maximum duration of the warm-up of an API server after an outage. The server then responds, but has not
// loaded all roles, quotas and service accounts. It refuses requests that it will allow a moment later.
const warmUp = 10 * time.Second

// maxStatus is the maximum number of bytes to read from the API server's error response. It is sufficient for all
// object names and error reasons.
const maxStatus = 64 << 10

// tolerateWarmUp wraps a transport, and converts the API server's refusals during its warm-up to transport errors.
// Callers retry transport errors, as in an outage. Without the conversion, they would treat a refusal as permanent,
// although the same request may succeed a moment later.
func tolerateWarmUp(next http.RoundTripper) http.RoundTripper {
	// since is the time of the last request that did not reach the API server. It is nil if every request reached the
	// server.
	var since atomic.Pointer[time.Time]
	return transport{next, func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		switch {
		case err != nil:
			if request.Context().Err() == nil {
				since.Store(new(time.Now()))
			}
			return nil, err
		case response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized:
			return response, nil
		}
		if away := since.Load(); away == nil || time.Since(*away) >= warmUp {
			return response, nil
		}
		return nil, fmt.Errorf("the API server has just restarted and may not have loaded its roles yet: %w",
			refusalError(response))
	}}
}

// refusalError returns an error with the message from the API server's error response. If the message is unreadable,
// the error contains the HTTP status instead. It closes the body of the response.
func refusalError(response *http.Response) error {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err == nil {
		if status, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			return errors.New(apierrors.FromObject(status).Error()) // IsTransient treats a status error as permanent
		}
	}
	return fmt.Errorf("it answers %s", response.Status)
}
