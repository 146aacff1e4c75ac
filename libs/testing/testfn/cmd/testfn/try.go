// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// tryAttempt makes an attempt and writes its result: "done", or the error.
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
