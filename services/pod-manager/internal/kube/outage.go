// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// outage tracks the failed requests of an informer. It counts all failures. It logs the first failure, a reminder
// every 5 minutes (reportInterval), and the recovery.
type outage struct {
	resource string // resource that the informer lists
	log      *slog.Logger
	metrics  *metrics

	mu       sync.Mutex
	since    time.Time // zero while the informer is up to date
	cause    error     // last failure while the informer is out of date
	reported time.Time
	listable bool // true if the last list request succeeded
	relisted bool // true if the missing right to watch was logged
}

// reportInterval is the interval at which a lasting failure is logged again.
const reportInterval = 5 * time.Minute

// recordFailure records that a request failed, so that the informer is out of date.
func (o *outage) recordFailure(ctx context.Context, err error) {
	o.metrics.watchFailed(ctx, o.resource)
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.cause = err
	if o.since.IsZero() {
		o.since = now
		o.reported = time.Time{}
	}
	if now.Sub(o.reported) < reportInterval {
		return
	}
	o.reported = now
	o.log.WarnContext(ctx, "watch interrupted; existing pods keep serving",
		"resource", o.resource, "since", o.since, "error", err)
}

// recordRecovery records that a request succeeded, so that the informer is up to date again.
func (o *outage) recordRecovery(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return
	}
	o.log.InfoContext(ctx, "watch restored", "resource", o.resource, "seconds", time.Since(o.since))
	o.since, o.cause = time.Time{}, nil
}

// recordList records whether the last list request succeeded. If so, the informer can poll if watches are
// forbidden.
func (o *outage) recordList(ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.listable = ok
}

// watchEnded is called when a list or watch request ends. It records the error, unless the end is normal. Client-go
// repeats the request within half a minute.
func (o *outage) watchEnded(ctx context.Context, _ *cache.Reflector, err error) {
	switch {
	case ctx.Err() != nil:
		// The program is stopping.
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		// Watches end normally after many changes or a long time.
	case apierrors.IsForbidden(err) && o.mayList():
		o.logMissingWatch(ctx, err)
	default:
		o.recordFailure(ctx, err)
	}
}

func (o *outage) mayList() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.listable
}

// logMissingWatch logs once that the right to watch the objects is missing and that the informer polls by lists.
func (o *outage) logMissingWatch(ctx context.Context, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.relisted {
		return
	}
	o.relisted = true
	o.log.WarnContext(ctx, "watch not permitted; polling", "resource", o.resource, "error", err,
		"hint", "changes are seen after up to half a minute; allow the verb watch in the Role")
}

// obstacle returns the reason that the informer is out of date, or nil if it is up to date. In the error text,
// things names the informer's objects, and rights names the deploy component that grants the necessary rights.
func (o *outage) obstacle(things, rights string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.cause == nil:
		return nil
	case apierrors.IsForbidden(o.cause):
		return fault.New(fault.Precondition,
			"the Kubernetes API forbids reading %s, which needs the rights of %s: %w", things, rights, o.cause)
	}
	return fault.New(fault.Unavailable, "cannot read %s from the Kubernetes API: %w", things, o.cause)
}
