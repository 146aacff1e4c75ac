// SPDX-License-Identifier: Apache-2.0

// Package typo suggests the valid name that a user most likely meant. It is for error messages about misspelled names.
package typo

import "strings"

// Nearest returns the name that is most similar to wrong, or the first of several equally similar names. The distance
// of a name is the number of letters to insert, delete or replace, regardless of case. A name is similar enough if its
// distance is at most maxEdits and less than the name's length. If no name is similar enough, Nearest returns "".
func Nearest(wrong string, names []string, maxEdits int) string {
	nearest, fewest := "", maxEdits+1
	for _, name := range names {
		if n := countEdits(strings.ToLower(wrong), strings.ToLower(name)); n < fewest && n < len(name) {
			nearest, fewest = name, n
		}
	}
	return nearest
}

// countEdits returns the minimum number of letters to insert, delete or replace to turn a into b.
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
			diagonal = row[j+1]
			row[j+1] = edits
		}
	}
	return row[len(b)]
}
