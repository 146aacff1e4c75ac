// SPDX-License-Identifier: Apache-2.0

// Command memory is a function that uses more and more memory until it is killed. It first reads its input.
package main

import (
	"io"
	"os"
	"time"
)

const megabyte = 1 << 20

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
		// Grow slowly, because the wrapper server must see the growth before the kernel ends the container, also while
		// the machine is so busy that its check runs late.
		time.Sleep(30 * time.Millisecond)
	}
}
