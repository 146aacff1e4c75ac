// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// summary returns the median, the 99th percentile and the mean of durations, and the processor time per call.
func (t times) summary() [4]time.Duration {
	var sum time.Duration
	for _, d := range t.evaluations {
		sum += d
	}
	return [4]time.Duration{
		t.quantile(.5), t.quantile(.99), sum / time.Duration(len(t.evaluations)),
		t.cpu / time.Duration(t.calls),
	}
}

// quantile returns the duration that the given share of evaluations does not exceed.
func (t times) quantile(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.evaluations))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// resourceList returns a resource list with the given number of Deployments, with the annotations that kpt adds.
func resourceList(items int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := range items {
		fmt.Fprintf(&b, deployment, i)
	}
	b.WriteString("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: fn-config\n  data:\n" +
		"    namespace: shop\n")
	return []byte(b.String())
}

const deployment = `- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-%[1]d
    namespace: default
    labels:
      app: web
    annotations:
      config.kubernetes.io/index: '0'
      config.kubernetes.io/path: 'deployment-%[1]d.yaml'
      internal.config.kubernetes.io/index: '0'
      internal.config.kubernetes.io/path: 'deployment-%[1]d.yaml'
  spec:
    replicas: 3 # as many as there are zones
    selector:
      matchLabels:
        app: web
    template:
      metadata:
        labels:
          app: web
      spec:
        containers:
        - name: web
          image: example.com/web:v1.2.3
`
