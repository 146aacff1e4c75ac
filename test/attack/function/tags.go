// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// writeTags writes a resource list with a single result that contains arg different tags. It then exits with an error,
// as a failing function does, because the server also parses the results of failing functions.
func writeTags(arg string) {
	n, _ := strconv.Atoi(arg)
	var list bytes.Buffer
	list.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n")
	list.WriteString("results:\n- message: odd\n  tags:\n")
	for i := range n {
		fmt.Fprintf(&list, "    k%d: v\n", i)
	}
	_, _ = os.Stdout.Write(list.Bytes())
	os.Exit(1)
}
