// SPDX-License-Identifier: Apache-2.0

// Package podname names function pods and their Services.
//
// Names are derived, not random: if two replicas fill the same slot concurrently, they choose the same name, and the
// second replica finds the existing pod.
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
	// maxLabel is the maximum length of a DNS label: a Service's name and a pod's host name.
	maxLabel = 63
	// suffixLength is the length of the suffix after a pod's id.
	suffixLength = 5
	// maxID is the maximum length of an id with a dash and a suffix.
	maxID = maxLabel - suffixLength - 1
	// hashLength is the number of hexadecimal digits of a hash or digest in an id.
	hashLength = 8
	// maxTag is the maximum length of the tag in a shortened id.
	maxTag = 16
)

// suffixAlphabet contains the 27 characters of suffixes: no vowels and no ambiguous characters, as in names generated
// by Kubernetes.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// PodID returns the id of the pod in a slot, counted from 1: the value of its label and the name of its Service. The
// format is "<last path segment>-<tag without dots>-<slot>-<8 digits of the digest>". The id is a DNS label (RFC
// 1035) of at most 57 characters for any image name. If the name needs changes other than dashes for underscores and
// a tag without dots, the id contains a hash of the reference, so that different images keep different ids.
//
// Images with the same last segment, tag and digest share their ids, even if they are in different repositories: the
// format is too short for the repository. So pools skip slots with the id of another image's pod, because the pods
// would share a Service.
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

// PoolID returns the common part of the ids of a function's pods. It is not the id of any pod.
func PoolID(reference, digest string) string { return PodID(reference, digest, 0) }

// PodName returns the name of the pod in a slot: its id and a suffix that distinguishes the pod from its predecessor.
// predecessor is the UID of the predecessor, empty for the first pod in the slot.
func PodName(reference, digest string, slot int, predecessor string) string {
	sum := hashParts(reference, digest, strconv.Itoa(slot), predecessor)
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		suffix[i] = suffixAlphabet[int(sum[i])%len(suffixAlphabet)]
	}
	return PodID(reference, digest, slot) + "-" + string(suffix)
}

// label matches the readable part of an id. The other parts complete the label.
var label = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// readableParts returns the readable parts of an id: the last path segment, and the tag without dots after a dash. The
// tag is empty without a tag.
func readableParts(reference string) (name, tag string) {
	name, tag, _ = strings.Cut(path.Base(reference), ":")
	if tag != "" {
		tag = "-" + strings.ReplaceAll(tag, ".", "")
	}
	return name, tag
}

// invalidRunes matches characters that are invalid in labels.
var invalidRunes = regexp.MustCompile(`[^a-z0-9-]+`)

// labelPart converts a text to a part of a label, of at most limit characters. It keeps the start, which is the most
// specific.
func labelPart(text string, limit int) string {
	text = invalidRunes.ReplaceAllString(strings.ToLower(text), "-")
	return strings.TrimRight(text[:min(len(text), limit)], "-")
}

// hexDigits matches the used digits of a digest.
var hexDigits = regexp.MustCompile(`^[a-z0-9+._-]+:([0-9a-f]{8})`)

// digestDigits returns the first digits of a digest, or of a hash of an invalid digest.
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

// hashParts hashes the parts with their lengths, so that different lists of parts differ in their bytes.
func hashParts(parts ...string) [sha256.Size]byte {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	return sha256.Sum256([]byte(b.String()))
}

// ID returns the id in a name from [PodName].
func ID(pod string) string { return pod[:max(len(pod)-suffixLength-1, 0)] }
