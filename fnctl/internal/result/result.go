// SPDX-License-Identifier: Apache-2.0

// Package result holds the results that functions report about resources, in one form for both
// sources: a ResourceList, and the details of a failed call.
package result

import (
	"fmt"
	"strings"
)

// Severity is the severity of a result.
type Severity string

// The severities, worst first.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Info    Severity = "info"
)

// Result is a report of a function. Only the message is always set.
type Result struct {
	Message  string
	Severity Severity
	// Resource is apiVersion, kind, namespace and name, joined by slashes.
	Resource string
	// Field is the path of a field in that resource.
	Field string
	// File is the path of a file in the package.
	File string
}

// String returns the result as a single line if its message is a single line.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]", r.Severity)
	for _, part := range []string{r.Resource, r.Field} {
		if part != "" {
			b.WriteString(" " + part)
		}
	}
	if r.File != "" {
		fmt.Fprintf(&b, " (%s)", r.File)
	}
	if b.Len() > len(r.Severity)+len("[]") {
		b.WriteString(":")
	}
	return b.String() + " " + strings.TrimSpace(r.Message)
}

// parseSeverity returns the severity named s. A result without a severity is information.
func parseSeverity(s string) Severity {
	if s == "" {
		return Info
	}
	return Severity(strings.ToLower(s))
}

// joinNonEmpty joins the non-empty parts by slashes.
func joinNonEmpty(parts ...string) string {
	var present []string
	for _, p := range parts {
		if p != "" {
			present = append(present, p)
		}
	}
	return strings.Join(present, "/")
}
