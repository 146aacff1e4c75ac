// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"fmt"
)

// Limits of lists that are decoded in full. The YAML library creates a node of about 200 bytes for each value, so
// that a list with many short values needs much memory. For each value, the library also searches all %TAG
// directives.
const (
	anyValues = 1 << 18
	// bytesPerValue is the minimum average of bytes per value in lists with more than anyValues values. Even JSON of
	// Kubernetes resources without blanks needs seven bytes per value, so that only artificial lists are rejected.
	bytesPerValue = 5
	// maxTagDirectives is the maximum number of lines that start like a %TAG directive.
	maxTagDirectives = 64
)

// Limits of a list's results. Results are decoded to Go values, unlike the rest of a list.
const (
	maxResults = 100_000
	// maxKeys is the maximum number of keys in a mapping of the results. The YAML library compares each key with each
	// other key.
	maxKeys = 1000
	// maxResultExpansion and maxResultExpansionFactor limit the size of the results with aliases expanded: in bytes,
	// and as a multiple of the list's size if that is more.
	maxResultExpansion       = 1 << 20
	maxResultExpansionFactor = 2
)

// checkLimits returns an error if decoding data could use too much memory or time. Otherwise, it returns the
// approximate number of values in data.
func checkLimits(data []byte) (values int, err error) {
	values = countValues(data)
	if most := max(anyValues, len(data)/bytesPerValue); values > most {
		return 0, fmt.Errorf("the list has about %d values in %d bytes, and may have up to %d: "+
			"write it in YAML's block style, or split it",
			values, len(data), most)
	}
	if n := countTagDirectives(data); n > maxTagDirectives {
		return 0, fmt.Errorf("%d lines begin with %%TAG, and up to %d may: write tags out", n, maxTagDirectives)
	}
	return values, nil
}

// countValues estimates for how many values of data the YAML library creates a node. The estimate is at least half
// of the true number. It counts the characters that precede values, such as ":" and ",", even if they are part of a
// text.
func countValues(data []byte) int {
	values, before := 1, byte('\n')
	for i, c := range data {
		switch c {
		case ',', '[', '{':
			values++
		case '-', '?':
			if i+1 == len(data) || isSpace(data[i+1]) {
				values++
			}
		case ':':
			if before == '"' || before == '\'' || i+1 == len(data) || isSpace(data[i+1]) {
				values += 2
			}
		}
		before = c
	}
	return values
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// countTagDirectives returns the number of lines that start like a %TAG directive.
func countTagDirectives(data []byte) int {
	n := bytes.Count(data, []byte("\n%TAG")) + bytes.Count(data, []byte("\r%TAG"))
	if bytes.HasPrefix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("%TAG")) {
		n++
	}
	return n
}
