package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const header = "items callers way      samples        p50        p99  p50/bare  p99/bare"

// report prints the times of one measurement.
func report(out io.Writer, items, callers int, ways []way, times map[string][]time.Duration) error {
	base := times[ways[0].name]
	for _, w := range ways {
		t := times[w.name]
		_, err := fmt.Fprintf(out, "%5d %7d %-8s %8d %10s %10s %9.3f %9.3f\n", items, callers, w.name, len(t),
			round(quantile(t, .5)), round(quantile(t, .99)),
			float64(quantile(t, .5))/float64(quantile(base, .5)), float64(quantile(t, .99))/float64(quantile(base, .99)))
		if err != nil {
			return err
		}
	}
	return nil
}

// quantile returns the time below which the given share of times is.
func quantile(times []time.Duration, share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}

func round(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// resourceList returns a list of that many deployments, as kpt would send them.
func resourceList(items int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	for i := range items {
		fmt.Fprintf(&b, deployment, i)
	}
	b.WriteString("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: fn-config\n  data:\n    namespace: shop\n")
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
