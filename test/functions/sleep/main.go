// SPDX-License-Identifier: Apache-2.0

// Command sleep is a function that sleeps for data.duration of its ConfigMap, by default ten seconds. First, it writes
// TESTFN_GREETING bytes to stderr. This tests processes that servers start in advance: a server must discard such a
// process if it writes more than 64 KiB.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kustomize/kyaml/fn/framework"
)

func main() {
	if size, err := strconv.Atoi(os.Getenv("TESTFN_GREETING")); err == nil {
		fmt.Fprint(os.Stderr, strings.Repeat("-", size))
	}
	if err := framework.Execute(framework.ResourceListProcessorFunc(sleep), nil); err != nil {
		os.Exit(1)
	}
}

func sleep(list *framework.ResourceList) error {
	var config struct {
		Data struct {
			Duration string `yaml:"duration"`
		} `yaml:"data"`
	}
	config.Data.Duration = "10s"
	if err := framework.LoadFunctionConfig(list.FunctionConfig, &config); err != nil {
		return err
	}
	duration, err := time.ParseDuration(config.Data.Duration)
	if err != nil {
		return fmt.Errorf("data.duration of the function's ConfigMap: %w", err)
	}
	time.Sleep(duration)
	return nil
}
