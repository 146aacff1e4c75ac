// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strconv"
)

// fillDisk writes as many files of one mebibyte to the temporary directory as value says, and hangs.
func fillDisk(value string) int {
	n, err := strconv.Atoi(value)
	exitOnError(err)
	readInput()
	for range n {
		f, err := os.CreateTemp("", "fill")
		exitOnError(err)
		_, err = f.Write(make([]byte, 1<<20))
		exitOnError(err)
		exitOnError(f.Close())
	}
	return hang("")
}

// nestDirectories creates nested directories in the temporary directory, as deep as value says, and hangs.
func nestDirectories(value string) int {
	n, err := strconv.Atoi(value)
	exitOnError(err)
	readInput()
	exitOnError(os.Chdir(os.TempDir()))
	for range n {
		exitOnError(os.Mkdir("d", 0o700))
		exitOnError(os.Chdir("d"))
	}
	return hang("")
}
