// SPDX-License-Identifier: Apache-2.0

// Command memory is a function that reads its input, and then uses more and more memory until it is killed.
package main

import (
	"io"
	"os"
	"time"
)

const (
	megabyte = 1 << 20
	// fast is the number of megabytes after which the function grows more slowly. It must be below the memory at which
	// the wrapper-server kills the function.
	fast = 48
)

var held [][]byte

func main() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	for {
		block := make([]byte, megabyte)
		// Write to each page, because untouched pages occupy no memory.
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		// Grow slowly, so that the wrapper-server notices the growth before the kernel kills the container. It must notice
		// this even if the machine is busy and its check runs late.
		if len(held) > fast {
			time.Sleep(100 * time.Millisecond)
		}
	}
}
