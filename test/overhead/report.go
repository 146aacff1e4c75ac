// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const header = "items callers way        samples        p50        p99       mean        cpu  p50/bare  p99/bare " +
	"mean/bare  cpu/bare"

// report prints the times of one measurement; cpu is the average processor time of an evaluation.
// With about as many callers as processors, the median alone misleads: an evaluation has a
// processor for itself or shares it, and the median shows which is more frequent.
func report(out io.Writer, items, callers int, ways []way, all map[string]times) error {
	base := all[ways[0].name].summary()
	for _, w := range ways {
		t := all[w.name]
		of := t.summary()
		var times, ratios strings.Builder
		for i, d := range of {
			fmt.Fprintf(&times, " %10s", d.Round(10*time.Microsecond))
			fmt.Fprintf(&ratios, " %9.3f", float64(d)/float64(base[i]))
		}
		if _, err := fmt.Fprintf(out, "%5d %7d %-10s %8d%s%s\n", items, callers, w.name, len(t.evaluations), &times,
			&ratios); err != nil {
			return err
		}
	}
	return nil
}

// summary returns median, 99th percentile, mean and processor time of an evaluation.
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

// quantile returns the time below which the given share of evaluations is.
func (t times) quantile(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.evaluations))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

// resourceList returns a list of n deployments, as kpt would send them.
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
