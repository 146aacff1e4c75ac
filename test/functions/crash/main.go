// SPDX-License-Identifier: Apache-2.0

// Command crash is a function that reads its input and then panics.
package main

import (
	"io"
	"os"
)

func main() {
	n, err := io.Copy(io.Discard, os.Stdin)
	if err != nil {
		panic(err)
	}
	panic(n)
}
