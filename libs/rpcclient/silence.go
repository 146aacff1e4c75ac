// SPDX-License-Identifier: Apache-2.0

package rpcclient

import (
	"fmt"
	"net/url"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// newSilences returns the metric that counts how often a replica was found not to answer.
func newSilences(meters metric.MeterProvider) (metric.Int64Counter, error) {
	counter, err := meters.Meter("rpcclient").Int64Counter("fn.silent.replicas",
		metric.WithDescription("Replicas of another service that were found not to answer. Labels: service."))
	if err != nil {
		return nil, fmt.Errorf("set up the metrics of calls to other services: %w", err)
	}
	return counter, nil
}

// serviceOf returns the first part of an address's host name (the name of the Kubernetes Service).
func serviceOf(address *url.URL) string {
	service, _, _ := strings.Cut(address.Hostname(), ".")
	return service
}

// silenceOf returns the label that names a service in the metric of replicas that do not answer.
func silenceOf(service string) metric.MeasurementOption {
	return metric.WithAttributes(attribute.String("service", service))
}
