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

// warmUp is the maximum time of the API server's warm-up after an outage. The server answers before it has loaded
// roles, quotas and service accounts, and refuses requests that it allows a moment later.
const warmUp = 10 * time.Second

// maxStatus is the number of bytes read from a refusal. It is enough for any name and reason.
const maxStatus = 64 << 10

// warmUpTransport turns refusals during the API server warm-up into transport errors, so that they are retried as part
// of the outage. A pod that can be created a moment later must not fail permanently.
type warmUpTransport struct {
	next http.RoundTripper
	// since is the last time at which the server was unreachable, by this machine's clock.
	since *atomic.Pointer[time.Time]
}

// toleratingWarmUp returns a transport that marks refusals during the warm-up as transport errors.
func toleratingWarmUp(next http.RoundTripper) http.RoundTripper {
	return warmUpTransport{next: next, since: new(atomic.Pointer[time.Time])}
}

// RoundTrip implements [http.RoundTripper].
func (w warmUpTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.next.RoundTrip(request)
	switch {
	case err != nil:
		if request.Context().Err() == nil {
			now := time.Now()
			w.since.Store(&now)
		}
		return nil, err
	case response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized:
		return response, nil
	}
	if away := w.since.Load(); away == nil || time.Since(*away) >= warmUp {
		return response, nil
	}
	return nil, fmt.Errorf("the API server has just restarted and may not have loaded its roles yet: %w",
		refusalError(response))
}

// WrappedRoundTripper lets client-go close idle connections.
func (w warmUpTransport) WrappedRoundTripper() http.RoundTripper { return w.next }

// refusalError returns the API server's refusal with its message, if the message is readable. It closes the body.
func refusalError(response *http.Response) error {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err == nil {
		if status, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			return errors.New(apierrors.FromObject(status).Error()) // a status error would count as final
		}
	}
	return fmt.Errorf("it answers %s", response.Status)
}
