// SPDX-License-Identifier: Apache-2.0

// Command memory is a function that uses more and more memory until it is killed. It first reads its input.
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
		// Write to each page, because untouched pages occupy no memory.
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		held = append(held, block)
		// Grow slowly, so that a monitor can observe the growth.
		time.Sleep(time.Duration(len(held)) * time.Microsecond)
	}
}
