// Command flood is a function that writes to both of its outputs until one of
// them is closed.
package main

import (
	"bytes"
	"os"
)

func main() {
	block := bytes.Repeat([]byte("# the water is rising and rising\n"), 2000)
	for {
		for _, output := range []*os.File{os.Stdout, os.Stderr} {
			if _, err := output.Write(block); err != nil {
				os.Exit(1)
			}
		}
	}
}
