// SPDX-License-Identifier: Apache-2.0

// Package packagelist creates resource lists for measurements, like the lists that kpt sends to functions.
package packagelist

import (
	"fmt"
	"strings"
)

// New returns an input for the function set-namespace: a list of Deployments with the annotations that kpt adds.
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
