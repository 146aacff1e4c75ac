// SPDX-License-Identifier: Apache-2.0

// Package typo suggests names for misspelled names.
package typo

import "strings"

// Nearest returns the first of the names with the fewest letters to insert, delete or replace, regardless of case. It
// is empty if more than maxEdits letters are wrong, or as many as the name contains.
func Nearest(wrong string, names []string, maxEdits int) string {
	nearest, fewest := "", maxEdits+1
	for _, name := range names {
		if n := countEdits(strings.ToLower(wrong), strings.ToLower(name)); n < fewest && n < len(name) {
			nearest, fewest = name, n
		}
	}
	return nearest
}

// countEdits counts the letters to insert, delete or replace to make b of a.
func countEdits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			edits := diagonal
			if a[i] != b[j] {
				edits = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], edits
		}
	}
	return row[len(b)]
}
