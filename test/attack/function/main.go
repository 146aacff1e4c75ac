// SPDX-License-Identifier: Apache-2.0

// Command function is the function that test/attack evaluates. It reads the name of a behaviour from the function
// configuration in its input, performs this behaviour, and then returns its input.
//
// The input selects the behaviour, not the program's name, so that a single server can serve harmless and hostile
// evaluations concurrently.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// behaviours are the actions that the input can select by name. ARG is the argument in the input.
var behaviours = map[string]func(arg string){
	"hang":    hangForever,   // never ends, and ignores SIGTERM
	"wait":    waitFor,       // ends after the duration ARG
	"tags":    writeTags,     // writes results with ARG distinct tags instead of its input
	"orphans": leaveOrphans,  // leaves ARG processes in sessions of their own
	"hide":    hideProcess,   // leaves a spy in the server's process group
	"steal":   stealSecret,   // searches the memory of all processes for ARG
	"look":    lookAtServer,  // opens files of the server in /proc
	"signal":  signalServer,  // sends SIGTERM to the server
	"limit":   lowerLimits,   // lowers the server's limit of open files
	"connect": connectTo,     // connects to the address ARG
	"read":    readPath,      // reads the file ARG
	"leave":   leaveFile,     // leaves a file in the temporary directory
	"find":    findFile,      // searches for a file that "leave" left
	"eat":     eatMemory,     // uses ARG bytes of memory
	"tell":    writeLog,      // writes ARG to stderr and fails
	"fill":    fillDirectory, // writes ARG bytes into the temporary directory
}

func main() {
	// Some behaviours start copies of this program and pass the role of the copy as its argument 0.
	if role := roles[os.Args[0]]; role != nil {
		role()
		return
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if behave := behaviours[readField(input, "do")]; behave != nil {
		behave(readField(input, "arg"))
	}
	if _, err := os.Stdout.Write(input); err != nil {
		os.Exit(1)
	}
}

// readField returns a value of the function configuration in the input. The input must be formatted as [attacks.List]
// formats it.
func readField(input []byte, name string) string {
	_, rest, found := bytes.Cut(input, []byte("\n    "+name+": \""))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte("\"\n"))
	return string(value)
}

// reportBreach writes to stderr that a forbidden action succeeded. The attack reads the message from the function's
// log.
func reportBreach(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "breach: "+format+"\n", args...)
}
