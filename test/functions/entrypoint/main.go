// SPDX-License-Identifier: Apache-2.0

// Command entrypoint is a function whose only result contains its command line. Its image has both an ENTRYPOINT and
// a CMD.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
)

func main() {
	if err := framework.Execute(framework.ResourceListProcessorFunc(report), nil); err != nil {
		os.Exit(1)
	}
}

func report(list *framework.ResourceList) error {
	list.Results = append(list.Results, &framework.Result{
		Message:  fmt.Sprintf("%q", os.Args),
		Severity: framework.Info,
	})
	return nil
}
