// SPDX-License-Identifier: Apache-2.0

// Package podname names function pods and their Services.
//
// Names are derived, not drawn: two replicas that fill the same slot at the same
// moment choose the same name, and the second one finds that the pod is there.
package podname

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"regexp"
	"strconv"
	"strings"
)

const (
	// maxLabel is the longest DNS label: a Service's name and a pod's host name.
	maxLabel = 63
	// suffixLength is how long the part is that a pod's name has after its id.
	suffixLength = 5
	// maxID is the longest id that leaves space for a dash and the suffix.
	maxID = maxLabel - suffixLength - 1
	// hashLength is how many hexadecimal digits of a hash or digest are in an id.
	hashLength = 8
	// maxTag is how much of the tag is kept where not all of an id fits.
	maxTag = 16
)

// suffixAlphabet is what suffixes are made of: no vowels and nothing that is easily
// misread, as in the names that Kubernetes itself makes. It has 27 characters.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// PodID returns the id of the pod in a slot, counted from one: the value of its
// label and the name of its Service. It reads
// "<last path segment>-<tag without dots>-<slot>-<8 digits of the digest>" and is a
// DNS label (RFC 1035) of at most 57 characters whatever the image is called. Where
// that takes more changes than turning underscores into dashes and leaving out the
// tag's dots, a hash of the reference takes part, so that different images keep
// different ids.
//
// Images with the same last segment, tag and digest share their ids, even if they are in
// different repositories: the format has no more characters for it. So slots are left
// out whose id another image's pod has: they would share a Service.
func PodID(reference, digest string, slot int) string {
	tail := "-" + strconv.Itoa(slot) + "-" + digestDigits(digest)
	name, tag := readableParts(reference)
	if plain := strings.ReplaceAll(name+tag, "_", "-"); label.MatchString(plain) && len(plain)+len(tail) <= maxID {
		return plain + tail
	}
	tag = labelPart(tag, maxTag)
	tail = tag + "-" + hashDigits(reference) + tail
	name = labelPart(name, maxID-len(tail))
	if name == "" || name[0] < 'a' {
		name = labelPart("fn-"+name, maxID-len(tail))
	}
	return name + tail
}

// PoolID returns what the ids of all pods of a function have in common: the id of none of them.
func PoolID(reference, digest string) string { return PodID(reference, digest, 0) }

// PodName returns the name of the pod in a slot: its id and a suffix that distinguishes
// it from its predecessor there, the pod with that UID; empty if there was none.
func PodName(reference, digest string, slot int, predecessor string) string {
	sum := hashParts(reference, digest, strconv.Itoa(slot), predecessor)
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		suffix[i] = suffixAlphabet[int(sum[i])%len(suffixAlphabet)]
	}
	return PodID(reference, digest, slot) + "-" + string(suffix)
}

// label is what the readable part may be: what comes after it makes it a whole one.
var label = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// readableParts returns the parts of the id that users read: the last path segment, and
// the tag without dots, with a dash in front, if there is one.
func readableParts(reference string) (name, tag string) {
	name, tag, _ = strings.Cut(path.Base(reference), ":")
	if tag != "" {
		tag = "-" + strings.ReplaceAll(tag, ".", "")
	}
	return name, tag
}

// invalidRunes are characters that no label has.
var invalidRunes = regexp.MustCompile(`[^a-z0-9-]+`)

// labelPart makes a text part of a label, of at most limit characters. Its beginning
// is the most specific.
func labelPart(text string, limit int) string {
	text = invalidRunes.ReplaceAllString(strings.ToLower(text), "-")
	return strings.TrimRight(text[:min(len(text), limit)], "-")
}

// hexDigits finds the digits of a digest that are taken as they are.
var hexDigits = regexp.MustCompile(`^[a-z0-9+._-]+:([0-9a-f]{8})`)

// digestDigits returns the first digits of a digest, or a hash of what is none.
func digestDigits(digest string) string {
	if match := hexDigits.FindStringSubmatch(digest); match != nil {
		return match[1]
	}
	return hashDigits(digest)
}

// hashDigits returns the first digits of a text's hash.
func hashDigits(text string) string {
	sum := hashParts(text)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// hashParts hashes the parts. Each comes with its length, so that no two lists of parts
// are the same bytes.
func hashParts(parts ...string) [sha256.Size]byte {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	return sha256.Sum256([]byte(b.String()))
}

// ID returns the id in a name that [PodName] made.
func ID(pod string) string { return pod[:max(len(pod)-suffixLength-1, 0)] }
