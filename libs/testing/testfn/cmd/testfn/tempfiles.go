// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
)

// fill writes files of a mebibyte to the temporary directory, and hangs.
func fill(value string) int {
	n, err := strconv.Atoi(value)
	check(err)
	readInput()
	for range n {
		f, err := os.CreateTemp("", "fill")
		check(err)
		_, err = f.Write(make([]byte, 1<<20))
		check(err)
		check(f.Close())
	}
	return hang("")
}

// nest makes nested directories, and hangs.
func nest(value string) int {
	n, err := strconv.Atoi(value)
	check(err)
	readInput()
	check(os.Chdir(os.TempDir()))
	for range n {
		check(os.Mkdir("d", 0o700))
		check(os.Chdir("d"))
	}
	return hang("")
}
