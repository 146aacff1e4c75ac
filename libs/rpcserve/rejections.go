// SPDX-License-Identifier: Apache-2.0

package rpcserve

import (
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/mtls"
	"github.com/krm-function-runner/function-runner/libs/serve"
	"github.com/krm-function-runner/function-runner/libs/telemetry"
)

// maxPathBytes is the maximum length of a request's path in a log line.
const maxPathBytes = 200

// rejections counts and logs the requests that a port rejects because of their sender.
type rejections struct {
	port      string
	telemetry *telemetry.Telemetry
	total     metric.Int64Counter
	// lines contains a rate limiter of log lines for each reason of a rejection. Many rejections for one reason then
	// do not hide a rejection for another reason. The reasons are RPC codes, so that the map stays small.
	lines sync.Map
}

func newRejections(port string, t *telemetry.Telemetry) (*rejections, error) {
	total, err := t.Meters.Meter("rpcserve").Int64Counter("fn.callers.rejected",
		metric.WithDescription(
			"Requests that a port with TLS rejected because of their sender: unauthenticated without a valid "+
				"identity, permission_denied with an identity that may not call. Labels: port, reason."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of rejected callers: %w", err)
	}
	return &rejections{port: port, telemetry: t, total: total}, nil
}

// recordRejection counts a rejected request, and logs at most one request per minute and reason.
func (r *rejections) recordRejection(req *http.Request, err error) {
	reason := connect.CodeOf(err).String()
	r.total.Add(req.Context(), 1, metric.WithAttributes(
		attribute.String("port", r.port), attribute.String("reason", reason)))
	line, _ := r.lines.LoadOrStore(reason, serve.Occasionally())
	line.(func(func(int)))(func(count int) {
		path, _ := excerpt.Start(req.URL.Path, maxPathBytes)
		r.telemetry.Log.Warn("caller rejected", "endpoint", r.port,
			"peer", serve.Peer(req.RemoteAddr), "id", mtls.Peer(req.TLS).String(), "path", path, "count", count, "error", err)
	})
}
