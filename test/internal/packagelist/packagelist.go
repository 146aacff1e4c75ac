// SPDX-License-Identifier: Apache-2.0

// Package packagelist creates the resource lists that functions receive for packages, as inputs of measurements.
package packagelist

import (
	"fmt"
	"strings"
)

// New returns a list of the given number of Deployments for set-namespace, with the annotations that kpt adds.
func New(items int) []byte {
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
