// SPDX-License-Identifier: Apache-2.0

// Command team is an example of a KRM function in Go. It sets the label "team" on all resources.
package main

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

func main() {
	if err := framework.Execute(framework.ResourceListProcessorFunc(labelTeam), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// labelTeam sets the label "team" on all resources to the value in the function configuration.
func labelTeam(list *framework.ResourceList) error {
	team := list.FunctionConfig.GetDataMap()["team"]
	if team == "" {
		return errors.New("set team in the configuration")
	}
	for _, item := range list.Items {
		if err := item.PipeE(yaml.SetLabel("team", team)); err != nil {
			return err
		}
	}
	return nil
}
