// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"bufio"
	"bytes"
	"strings"
	"testing"
)

// FuzzReply reads what a server may send.
func FuzzReply(f *testing.F) {
	for _, reply := range []string{
		"+OK\r\n", "-ERR no\r\n", "$-1\r\n", "$0\r\n\r\n", "$3\r\nabc\r\n", "$3\r\nabcd\r\n",
		":1\r\n", "*0\r\n", "_\r\n", "$\r\n", "\n",
		"$+3\r\nabc\r\n", "$0x3\r\nabc\r\n", "$99999999999999999999\r\n",
	} {
		f.Add([]byte(reply))
	}
	f.Fuzz(func(t *testing.T, reply []byte) {
		const limit = 100
		value, err := readReply(bufio.NewReader(bytes.NewReader(reply)), limit)
		if len(value) > limit || cap(value) != len(value) {
			t.Errorf("%d bytes with a capacity of %d, of at most %d", len(value), cap(value), limit)
		}
		if value != nil && (err != nil || !bytes.Contains(reply, append(bytes.Clone(value), "\r\n"...))) {
			t.Errorf("%q, %v is not in the reply", value, err)
		}
		if err != nil && len(err.Error()) > 4*maxErrorBytes+100 {
			t.Errorf("an error of %d bytes", len(err.Error()))
		}
	})
}

// TestCommands compares commands with the protocol's bytes.
func TestCommands(t *testing.T) {
	var sent strings.Builder
	w := bufio.NewWriter(&sent)
	if err := writeCommand(w, [][]byte{[]byte("GET"), []byte("a\r\nb"), {}}); err != nil {
		t.Fatal(err)
	}
	if want := "*3\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n$0\r\n\r\n"; sent.String() != want {
		t.Errorf("sent %q, want %q", sent.String(), want)
	}
}
