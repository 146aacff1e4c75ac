// Command fail is a function that finds an error: it writes the list with two
// results and exits with 1.
package main

import (
	"os"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
)

func main() {
	if err := framework.Execute(framework.ResourceListProcessorFunc(fail), nil); err != nil {
		os.Exit(1)
	}
}

// fail returns its results as the error too: that makes the program's exit
// status 1 after the list has been written.
func fail(list *framework.ResourceList) error {
	list.Results = framework.Results{
		{Message: "this is not allowed", Severity: framework.Error, Tags: map[string]string{"rule": "never"}},
		{Message: "this is strange", Severity: framework.Warning},
	}
	return list.Results
}
