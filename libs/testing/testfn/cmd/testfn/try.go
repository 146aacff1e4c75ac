// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// tryAttempt performs the action of the map attempts that value names. It writes a ResourceList whose result is
// "done" or the error.
func tryAttempt(value string) int {
	readInput()
	name, target, _ := strings.Cut(value, ":")
	attempt, ok := attempts[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "testfn: no attempt %q\n", name)
		return usageStatus
	}
	result := "done"
	if err := attempt(target); err != nil {
		result = err.Error()
	}
	writeText(os.Stdout, emptyList+"results:\n- message: "+strconv.Quote(result)+"\n  severity: info\n")
	return 0
}
