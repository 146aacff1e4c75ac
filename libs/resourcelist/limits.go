// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"fmt"
)

// Limits of what is decoded in full. The YAML library needs a node of some 200 bytes for
// each value, so few bytes can take much memory, and it looks through all %TAG
// directives for each of them.
const (
	// anyValues is how many values a list of any size may have.
	anyValues = 1 << 18
	// bytesPerValue is how many bytes larger lists have for each value, at least. JSON
	// of Kubernetes resources without blanks has seven.
	bytesPerValue = 5
	// maxTagDirectives is how many lines may begin as a %TAG directive does.
	maxTagDirectives = 64
)

// Limits of the results, which become values of ours.
const (
	maxResults = 100_000
	// maxKeys is how many keys a mapping among the results may have. The YAML library
	// compares each key with each other one.
	maxKeys = 1000
	// maxResultExpansion is maxExpansion for the results.
	maxResultExpansion       = 1 << 20
	maxResultExpansionFactor = 2
)

// checkLimits returns about how many values data has, or an error if it is not to be
// decoded in full.
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

// countValues returns about how many nodes the YAML library makes of data: no less than
// half of them. It counts what stands before a value, and takes some text for values.
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

// countTagDirectives returns how many lines begin as a %TAG directive does.
func countTagDirectives(data []byte) int {
	n := bytes.Count(data, []byte("\n%TAG")) + bytes.Count(data, []byte("\r%TAG"))
	if bytes.HasPrefix(bytes.TrimPrefix(data, []byte("\ufeff")), []byte("%TAG")) {
		n++
	}
	return n
}
