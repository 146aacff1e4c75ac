// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/config"
)

func ExampleChecks() {
	var checks config.Checks
	checks.That(false, "MaxQueue", -1, "zero or more")
	checks.ServiceURL("PodManager", "pod-manager:9448")
	fmt.Println(config.Rename(checks.Err(), config.Variable))
	// Output:
	// FNR_MAX_QUEUE is -1: it must be zero or more
	// FNR_POD_MANAGER is "pod-manager:9448": it must be http://host:port or https://host:port
}
