// SPDX-License-Identifier: Apache-2.0

package resourcelist

import (
	"bytes"
	"fmt"
)

// Limits of full decodes. The YAML library creates a node of some 200 bytes for each value, so that a list with many
// short values needs much memory. For each value, it also searches all %TAG directives.
const (
	anyValues = 1 << 18
	// bytesPerValue is the minimum number of bytes per value in larger lists. JSON of Kubernetes resources without blanks
	// needs seven.
	bytesPerValue = 5
	// maxTagDirectives is the maximum number of lines that start like a %TAG directive.
	maxTagDirectives = 64
)

// Limits of the results, which are decoded in full.
const (
	maxResults = 100_000
	// maxKeys is the maximum number of keys in a mapping of the results. The YAML library compares all pairs of keys.
	maxKeys = 1000
	// maxResultExpansion and maxResultExpansionFactor limit aliases in the results, as maxExpansion and
	// maxExpansionFactor do in a list.
	maxResultExpansion       = 1 << 20
	maxResultExpansionFactor = 2
)

// checkLimits returns the approximate number of values in data, or an error if data must not be decoded in full.
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

// countValues estimates the number of nodes that the YAML library creates for data. The estimate is at least half of
// the true number. It counts the characters that precede values, including some such characters in texts.
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
