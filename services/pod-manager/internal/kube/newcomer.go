package kube

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

// settling is how long an API server is taken for one that has just started. It answers
// before it has loaded the roles, quotas and service accounts that it judges by, and
// refuses by the lack of them what it will allow a moment later.
const settling = 10 * time.Second

// maxStatus bounds what is read of a refusal, in bytes. It holds any name and reason.
const maxStatus = 64 << 10

// newcomer takes refusals of an API server that has just started for no answer at all, so
// that they are treated as what they are: the end of its absence. A pod that may be
// created in a moment must not be given up for good.
type newcomer struct {
	next http.RoundTripper
	// since is when it was away last, by this machine's clock.
	since *atomic.Pointer[time.Time]
}

// patientWithNewcomers returns next such that those who ask an API server that has just
// started try again.
func patientWithNewcomers(next http.RoundTripper) http.RoundTripper {
	return newcomer{next: next, since: new(atomic.Pointer[time.Time])}
}

// RoundTrip is that of [http.RoundTripper].
func (n newcomer) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(request)
	switch {
	case err != nil:
		if request.Context().Err() == nil {
			now := time.Now()
			n.since.Store(&now)
		}
		return nil, err
	case response.StatusCode != http.StatusForbidden && response.StatusCode != http.StatusUnauthorized:
		return response, nil
	}
	if away := n.since.Load(); away == nil || time.Since(*away) >= settling {
		return response, nil
	}
	return nil, fmt.Errorf("it was away until just now, and may not have loaded yet what it refuses this by: %w", refused(response))
}

// WrappedRoundTripper is what client-go asks for to close idle connections.
func (n newcomer) WrappedRoundTripper() http.RoundTripper { return n.next }

// refused is an API server's refusal in its own words, if they can be read. It closes
// the body.
func refused(response *http.Response) error {
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err == nil {
		if status, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
			return errors.New(apierrors.FromObject(status).Error()) // no status any more: that would be taken for its judgement
		}
	}
	return fmt.Errorf("it answers %s", response.Status)
}
