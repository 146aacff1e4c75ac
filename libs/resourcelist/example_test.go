// SPDX-License-Identifier: Apache-2.0

package resourcelist_test

import (
	"context"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
)

func ExampleParse() {
	list := `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items: []
results:
- message: the field is required
  severity: error
  resourceRef: {apiVersion: v1, kind: ConfigMap, name: settings}
  field: {path: data.port}
`
	results, err := resourcelist.Parse(context.Background(), []byte(list))
	fmt.Println(resourcelist.FormatResults(results), err)
	fmt.Println(resourcelist.Worst(results))
	// Output:
	// [error] v1/ConfigMap/settings data.port: the field is required <nil>
	// error
}
