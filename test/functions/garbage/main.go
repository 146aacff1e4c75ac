// Command garbage is a function that exits with 0 after it wrote what is no
// YAML at all.
package main

import (
	"io"
	"os"
)

func main() {
	_, readErr := io.Copy(io.Discard, os.Stdin)
	_, writeErr := os.Stdout.WriteString("\x00\xff: [}\n\t- {unclosed: \"\n")
	if readErr != nil || writeErr != nil {
		os.Exit(1)
	}
}
