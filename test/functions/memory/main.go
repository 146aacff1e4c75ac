// SPDX-License-Identifier: Apache-2.0

// Command memory is a function that allocates and touches more and more memory, after it reads its
// input, until it is stopped.
package main

import (
	"io"
	"os"
	"time"
)

const megabyte = 1 << 20

func main() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	var held [][]byte
	for {
		block := make([]byte, 8*megabyte)
		// Only a page that was written to occupies memory.
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		// Slow enough for a monitor to see it grow.
		time.Sleep(time.Duration(len(held)) * time.Microsecond)
	}
}
