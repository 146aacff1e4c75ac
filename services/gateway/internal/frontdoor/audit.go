// SPDX-License-Identifier: Apache-2.0

package frontdoor

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/krm-function-runner/function-runner/libs/caller"
	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/rpcserve"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/audit"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// Bounds of an event's texts, in bytes: callers choose some of them, and events are queued outside of the memory
// budget.
const (
	maxAuditName   = 1 << 10
	maxAuditReason = 1 << 10
)

// describeList returns the description of a resource list for the audit log, if there is one.
func (h *Handler) describeList(list []byte) audit.Content {
	if h.audit == nil {
		return audit.Content{}
	}
	return audit.Describe(list)
}

// record writes an evaluation to the audit log.
func (h *Handler) record(ctx context.Context, s sample, input, output audit.Content) {
	if h.audit == nil {
		return
	}
	identity := caller.From(ctx)
	e := audit.Event{
		Time: time.Now().UTC(), Evaluator: s.evaluator, Verdict: audit.NoPolicy, Rule: s.measured.Rule(),
		Caller: audit.Caller{
			ID: identity.ID, Kind: string(identity.Kind), Groups: identity.Groups, Address: rpcserve.Caller(ctx),
		},
		Image: audit.Image{
			Given: strings.Clone(excerpt.Middle(s.given, maxAuditName)), Name: s.image.String(), Digest: s.digest(),
			Signers: s.measured.Signers(),
		},
		Input: input, Seconds: s.took.Seconds(), Code: code(s.err),
		Reason: strings.Clone(excerpt.Middle(reason(s.err), maxAuditReason)),
	}
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		e.TraceID = span.TraceID().String()
	}
	if s.err == nil {
		e.Output = &output
	}
	if e.Rule != "" {
		e.Verdict = audit.Allowed
	}
	if denied, ok := errors.AsType[*evaluation.DeniedError](s.err); ok {
		e.Verdict, e.Rule = audit.Denied, denied.Rule
	}
	h.audit.Record(ctx, e)
}

// digest returns the digest that ran, or the one that the caller named.
func (s sample) digest() string {
	if s.resolved != "" {
		return s.resolved
	}
	if _, digest, ok := strings.Cut(s.measured.Leased().Image, "@"); ok {
		return digest
	}
	return s.image.Digest
}
