// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"

	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// maxExport is the maximum size in bytes of an OTLP request.
const maxExport = 4 << 20

// collectTraces accepts traces by OTLP over HTTP, as an OpenTelemetry Collector does, and prints all spans.
func collectTraces(ctx context.Context, address string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxExport))
		// Decode the request as TracesData, which has the same encoding as an export request.
		var data tracev1.TracesData
		if err == nil {
			err = proto.Unmarshal(body, &data)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		printSpans(&data)
		w.Header().Set("Content-Type", "application/x-protobuf") // the body is an empty message
	})
	return serveHTTP(ctx, address, mux)
}

// printSpans prints each span on a line, with its IDs, service and name. A root span has "-" as its parent's ID.
func printSpans(data *tracev1.TracesData) {
	for _, from := range data.GetResourceSpans() {
		service := textAttribute(from.GetResource().GetAttributes(), "service.name")
		for _, scope := range from.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				parent := "-"
				if id := span.GetParentSpanId(); len(id) > 0 {
					parent = hex.EncodeToString(id)
				}
				fmt.Printf("span %x %x %s %s %s\n", span.GetTraceId(), span.GetSpanId(), parent, service, span.GetName())
			}
		}
	}
}

// textAttribute returns the value of a string attribute, or an empty text if the attribute does not exist.
func textAttribute(attributes []*commonv1.KeyValue, key string) string {
	for _, attribute := range attributes {
		if attribute.GetKey() == key {
			return attribute.GetValue().GetStringValue()
		}
	}
	return ""
}
