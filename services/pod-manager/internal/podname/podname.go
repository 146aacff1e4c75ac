// SPDX-License-Identifier: Apache-2.0

// Package podname names function pods and their Services. A name is not random. It is derived from the function and the
// slot, the pod's number among the function's pods. If two replicas of the pod-manager create the pod for the same slot
// concurrently, the second replica therefore finds the first replica's pod.
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
	// maxLabel is the maximum length of a DNS label. Service names and the host names of pods are DNS labels.
	maxLabel = 63
	// suffixLength is the length of the suffix in a pod's name. The name consists of an id, a dash and the suffix.
	suffixLength = 5
	// maxID is the maximum length of an id. A pod's name is at most maxLabel long, and also contains a dash and a suffix.
	maxID = maxLabel - suffixLength - 1
	// hashLength is the number of hexadecimal digits of a hash or digest in an id.
	hashLength = 8
	// maxTag is the maximum length of the image tag in an id that exceeds the length limit.
	maxTag = 16
)

// suffixAlphabet contains no vowels and no ambiguous characters, like the alphabet of names that Kubernetes generates.
const suffixAlphabet = "bcdfghjklmnpqrstvwxz2456789"

// PodID returns a pod's id, which is the value of the pod's label and the name of its Service. slot is the pod's number
// among the function's pods, from 1. The id is a DNS label (RFC 1035) of at most 57 characters: "<last path
// segment>-<tag without dots>-<slot>-<8 digits of the digest>", with dashes for underscores. If the image name requires
// other changes, such as shortening, the id also contains a hash of the reference. Images with the same last segment,
// tag and digest have the same ids. A pool skips slots whose id belongs to a pod of another image, because both pods
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

// PoolID returns an id that all pods of a function share. It is the id of slot 0, a slot that no pod uses.
func PoolID(reference, digest string) string { return PodID(reference, digest, 0) }

// PodName returns a pod's name, which is the pod's id and a suffix. The suffix distinguishes the pod from the
// former pod in the same slot. predecessor is the UID of the former pod, or empty if there is none.
func PodName(reference, digest string, slot int, predecessor string) string {
	sum := hashParts(reference, digest, strconv.Itoa(slot), predecessor)
	suffix := make([]byte, suffixLength)
	for i := range suffix {
		suffix[i] = suffixAlphabet[int(sum[i])%len(suffixAlphabet)]
	}
	return PodID(reference, digest, slot) + "-" + string(suffix)
}

// label matches names and tags that are valid in a pod's id without changes.
var label = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// readableParts returns the parts of an image reference that a pod's id contains in readable form. name is the last
// path segment. tag is the image tag without dots, with a dash in front, or empty if the reference contains no tag.
func readableParts(reference string) (name, tag string) {
	name, tag, _ = strings.Cut(path.Base(reference), ":")
	if tag != "" {
		tag = "-" + strings.ReplaceAll(tag, ".", "")
	}
	return name, tag
}

// invalidRunes matches characters that are invalid in DNS labels.
var invalidRunes = regexp.MustCompile(`[^a-z0-9-]+`)

// labelPart converts a text to characters that are valid in a DNS label. If the text exceeds the limit, labelPart cuts
// the end, because the start is more specific.
func labelPart(text string, limit int) string {
	text = invalidRunes.ReplaceAllString(strings.ToLower(text), "-")
	return strings.TrimRight(text[:min(len(text), limit)], "-")
}

// hexDigits matches a digest, and captures the digits that become part of a pod's id.
var hexDigits = regexp.MustCompile(`^[a-z0-9+._-]+:([0-9a-f]{8})`)

// digestDigits returns the first hexadecimal digits of a digest, for a pod's id. If the digest is invalid, they
// come from a hash of the text.
func digestDigits(digest string) string {
	if match := hexDigits.FindStringSubmatch(digest); match != nil {
		return match[1]
	}
	return hashDigits(digest)
}

// hashDigits returns the first hexadecimal digits of a text's hash, for a pod's id.
func hashDigits(text string) string {
	sum := hashParts(text)
	return hex.EncodeToString(sum[:])[:hashLength]
}

// hashParts returns a hash of several texts. It includes their lengths, so that ("ab", "c") and ("a", "bc") have
// different hashes.
func hashParts(parts ...string) [sha256.Size]byte {
	var b strings.Builder
	for _, part := range parts {
		b.WriteString(strconv.Itoa(len(part)) + ":" + part)
	}
	return sha256.Sum256([]byte(b.String()))
}

// ID returns the id in a pod's name. The name must be from [PodName].
func ID(pod string) string { return pod[:max(len(pod)-suffixLength-1, 0)] }
