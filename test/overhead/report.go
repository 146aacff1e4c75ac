package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const header = "items callers way        samples        p50        p99        cpu  p50/bare  p99/bare  cpu/bare"

// report prints the times of one measurement; cpu is the processor time of an evaluation
// on average.
func report(out io.Writer, items, callers int, ways []way, all map[string]times) error {
	base := all[ways[0].name]
	for _, w := range ways {
		t := all[w.name]
		_, err := fmt.Fprintf(out, "%5d %7d %-10s %8d %10s %10s %10s %9.3f %9.3f %9.3f\n", items, callers, w.name, len(t.evaluations),
			round(t.quantile(.5)), round(t.quantile(.99)), round(t.average()),
			ratio(t.quantile(.5), base.quantile(.5)), ratio(t.quantile(.99), base.quantile(.99)), ratio(t.average(), base.average()))
		if err != nil {
			return err
		}
	}
	return nil
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }

// average returns the processor time of an evaluation.
func (t times) average() time.Duration { return t.cpu / time.Duration(t.calls) }

// quantile returns the time below which the given share of evaluations is.
func (t times) quantile(share float64) time.Duration {
	sorted := slices.Sorted(slices.Values(t.evaluations))
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
