// SPDX-License-Identifier: Apache-2.0

// Command entrypoint is a function that returns its command line as results, for tests of images with both an
// ENTRYPOINT and a CMD. It also writes the command line to directories that must be writable in a container, and
// returns the text that it reads back.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
)

func main() {
	if err := framework.Execute(framework.ResourceListProcessorFunc(report), nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func report(list *framework.ResourceList) error {
	line := fmt.Sprintf("%q", os.Args)
	addResult(list, line)
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		path := filepath.Join(dir, "arguments")
		if err := os.WriteFile(path, []byte(dir+": "+line), 0o600); err != nil {
			return err
		}
		kept, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		addResult(list, string(kept))
	}
	return nil
}

func addResult(list *framework.ResourceList, message string) {
	list.Results = append(list.Results, &framework.Result{Message: message, Severity: framework.Info})
}
