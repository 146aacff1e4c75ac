// SPDX-License-Identifier: Apache-2.0

// Command function is the function that test/attack evaluates. It first performs the behaviour that the input's
// function configuration names, and then returns its input.
//
// The behaviour comes with the input and not with the program's name, so that one program
// server can serve harmless and hostile evaluations side by side.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// behaviours do something with the argument that the input has for them.
var behaviours = map[string]func(arg string){
	"hang":    hangForever,   // never ends, and ignores SIGTERM
	"wait":    waitFor,       // ends after the duration ARG
	"tags":    writeTags,     // writes results with ARG distinct tags instead of its input
	"orphans": leaveOrphans,  // leaves ARG processes in sessions of their own
	"hide":    hideProcess,   // leaves a spy in the server's process group
	"steal":   stealSecret,   // searches the memory of all processes for ARG
	"look":    lookAtServer,  // opens the server's files in /proc
	"signal":  signalServer,  // sends SIGTERM to the server
	"limit":   lowerLimits,   // lowers the server's limit of open files
	"connect": connectTo,     // connects to the address ARG
	"read":    readPath,      // reads the file ARG
	"leave":   leaveFile,     // leaves a file in the temporary directory
	"find":    findFile,      // looks for such a file
	"eat":     eatMemory,     // uses ARG bytes of memory
	"tell":    writeLog,      // writes ARG to stderr and fails
	"fill":    fillDirectory, // writes ARG bytes into the temporary directory
}

func main() {
	// The behaviours start copies of this program with a role as their name.
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

// readField returns a value of the input's function configuration, as [attacks.List] writes it.
func readField(input []byte, name string) string {
	_, rest, found := bytes.Cut(input, []byte("\n    "+name+": \""))
	if !found {
		return ""
	}
	value, _, _ := bytes.Cut(rest, []byte("\"\n"))
	return string(value)
}

// reportBreach reports a forbidden action that succeeded to the attack, through the log.
func reportBreach(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "breach: "+format+"\n", args...)
}
