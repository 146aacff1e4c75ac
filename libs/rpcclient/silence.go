// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// newSilences returns the counter of replicas that became silent.
func newSilences(meters metric.MeterProvider) (metric.Int64Counter, error) {
	counter, err := meters.Meter("rpcclient").Int64Counter("fn.silent.replicas",
		metric.WithDescription("How often a replica of a service was found not to answer."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of calls to other services: %w", err)
	}
	return counter, nil
}

// serviceOf returns the name of the service at an address, without its namespace.
func serviceOf(address *url.URL) string {
	service, _, _ := strings.Cut(address.Hostname(), ".")
	return service
}

// silenceOf returns the attribute of a service's replica.
func silenceOf(service string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("service", service))
}
