// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// The verdicts of policies.
const (
	// NoPolicy is the verdict about calls that no policy was asked about.
	NoPolicy = "none"
	Allowed  = "allow"
	Denied   = "deny"
)

// Event is one evaluation. Nothing in it is from the resource lists or from what the function wrote.
type Event struct {
	Time    time.Time `json:"time"`
	TraceID string    `json:"trace_id,omitempty"`
	Caller  Caller    `json:"caller"`
	Image   Image     `json:"image"`
	// Evaluator is the evaluator that answered; empty if none did.
	Evaluator string `json:"evaluator,omitempty"`
	Verdict   string `json:"verdict"`
	// Rule is the rule of the policy that decided.
	Rule   string   `json:"rule,omitempty"`
	Input  Content  `json:"input"`
	Output *Content `json:"output,omitempty"` // of a success
	// Seconds is how long the evaluation took.
	Seconds float64 `json:"duration_seconds"`
	// Code is how it ended, as in metrics, and Reason why it failed.
	Code   string `json:"code"`
	Reason string `json:"reason,omitempty"`
}

// Caller is who asked.
type Caller struct {
	ID      string   `json:"id,omitempty"`
	Kind    string   `json:"kind,omitempty"`
	Groups  []string `json:"groups,omitempty"`
	Address string   `json:"address,omitempty"`
}

// Image is what was asked for.
type Image struct {
	// Given is the image as the caller wrote it, Name its canonical name.
	Given string `json:"given"`
	Name  string `json:"name,omitempty"`
	// Digest is the digest that ran, or the one in the image's name where that is not known.
	Digest string `json:"digest,omitempty"`
	// Signers are the signers of the policy that were verified to have signed this digest. Only evaluations whose
	// verdict may depend on it have them.
	Signers []string `json:"signers,omitempty"`
}

// Content describes a resource list.
type Content struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Describe returns the description of a resource list.
func Describe(list []byte) Content {
	sum := sha256.Sum256(list)
	return Content{Bytes: len(list), SHA256: hex.EncodeToString(sum[:])}
}
