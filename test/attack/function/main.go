// SPDX-License-Identifier: Apache-2.0

// Command function is a hostile KRM function for the tests in test/attack. Its input selects a behaviour, such as
// "hang", so that the same program can serve harmless and hostile evaluations. It performs the behaviour and then
// returns its input.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// behaviours maps names to hostile behaviours. The function's input contains a name and an argument (ARG below).
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
	// If argument 0 is the name of a role, this process is a helper that a hostile behaviour has started.
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

// readField returns a field of the function configuration. It supports only inputs in the format of [attacks.List].
func readField(input []byte, name string) string {
	_, rest, found := bytes.Cut(input, []byte("\n    "+name+": \""))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte("\"\n"))
	return string(value)
}

// reportBreach logs to stderr that a forbidden action succeeded. The test fails if it finds this message.
func reportBreach(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "breach: "+format+"\n", args...)
}
