// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"fmt"
	"strings"
)

// lastApplied is an annotation that kubectl writes, as a scalar of YAML.
const lastApplied = `"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",` +
	`\"metadata\":{\"annotations\":{},\"name\":\"web\",\"namespace\":\"shop\"},` +
	`\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"web\"}}}}\n"`

// deployment, configMap and crd are items as they are found in packages, each with
// a place for a number.
const (
	deployment = `- apiVersion: apps/v1
  kind: Deployment
  metadata:
    name: web-%[1]d
    namespace: shop # kpt-set: ${namespace}
    labels:
      app.kubernetes.io/name: web
      app.kubernetes.io/version: "1.29"
    annotations:
      internal.config.kubernetes.io/index: '%[1]d'
      internal.config.kubernetes.io/path: 'web/deployment-%[1]d.yaml'
      kubectl.kubernetes.io/last-applied-configuration: ` + lastApplied + `
  spec:
    replicas: 3
    selector:
      matchLabels:
        app: web-%[1]d
    strategy:
      type: RollingUpdate
      rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
    template:
      metadata:
        labels:
          app: web-%[1]d
      spec:
        securityContext:
          runAsNonRoot: true
        containers:
        - name: web
          image: registry.example.com/shop/web:v1.29.%[1]d
          args: ["--port", "8080"]
          env:
          - name: POD_NAME
            valueFrom:
              fieldRef:
                fieldPath: metadata.name
          - name: BACKEND
            value: http://backend.shop.svc:8080/api?x=1#top
          ports:
          - containerPort: 8080
            name: http
          livenessProbe:
            httpGet:
              path: /healthz
              port: http
            periodSeconds: 10
          resources:
            limits:
              cpu: 500m
              memory: 256Mi
          volumeMounts:
          - mountPath: /tmp
            name: tmp
        volumes:
        - name: tmp
          emptyDir: {}
`
	configMap = `- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: settings-%[1]d
    namespace: shop
    annotations:
      internal.config.kubernetes.io/path: 'web/settings-%[1]d.yaml'
  data:
    # the start script
    start.sh: |
      #!/bin/bash
      set -euo pipefail
      for f in /etc/web/*.conf; do
        if ! grep -q "listen: 80" "$f"; then
          echo "skip: $f" >&2
          continue
        fi
      done

      exec /usr/bin/web --name web-%[1]d
    config.json: |-
      {
        "name": "web-%[1]d",
        "features": ["a", "b", {"c": [1, 2, 3]}],
        "text": "key: value # no comment"
      }
    pom.xml: |+
      <project xmlns="http://maven.apache.org/POM/4.0.0">
        <artifactId>web-%[1]d</artifactId>
      </project>

`
	crd = `- apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    name: widgets%[1]d.example.com
    annotations:
      controller-gen.kubebuilder.io/version: v0.19.0
  spec:
    group: example.com
    names:
      kind: Widget%[1]d
      plural: widgets%[1]d
    scope: Namespaced
    versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          description: Widget is the Schema for the widgets API, which describes
            things that have a size and that may be put together
            with others of their kind.
          type: object
          properties:
            apiVersion:
              description: |-
                APIVersion defines the versioned schema of this representation of an object.
                Servers should convert recognized schemas to the latest internal value.
              type: string
            spec:
              description: >-
                Spec is what the widget should be: its parts are
                put together in the order given.

                Parts that do not fit are left out.
              type: object
              required:
              - size
              properties:
                size:
                  description: 'Size is one of: small, large. A widget''s size
                    does not change.'
                  enum:
                  - small
                  - large
                  type: string
                selector:
                  description: "Selector selects the parts: \"all\" selects
                    all of them,\tothers are names."
                  type: object
                  x-kubernetes-map-type: atomic
                weight:
                  anyOf:
                  - type: integer
                  - type: string
                  pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))$
                  x-kubernetes-int-or-string: true
`
	result = `- message: field added
  severity: info
  resourceRef:
    apiVersion: apps/v1
    kind: Deployment
    name: web-%[1]d
    namespace: shop
  field:
    path: metadata.labels
    proposedValue: web
  file:
    path: web/deployment-%[1]d.yaml
`
)

// realisticList returns a list of so many items, with a result for every hundred.
func realisticList(n int) []byte {
	var b strings.Builder
	b.WriteString(head + "items:\n")
	for i := range n {
		fmt.Fprintf(&b, []string{deployment, configMap, crd}[i%3], i)
	}
	b.WriteString("functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data:\n    namespace: shop\nresults:\n")
	for i := 0; i < n; i += 100 {
		fmt.Fprintf(&b, result, i)
	}
	return []byte(b.String())
}
