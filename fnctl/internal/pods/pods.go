// SPDX-License-Identifier: Apache-2.0

// Package pods describes function pods to users: the pods of each function, and their changes. It makes no requests.
package pods

import (
	"cmp"
	"strings"
)

// Is reports whether an image's full name may belong to the image of a call. It ignores the gateway's default prefix.
// If tag is set, it is a tag or constraint that replaces the image's own tag, and Is accepts every tag of the
// reference.
func Is(reference, image, tag string) bool {
	image, _, _ = strings.Cut(image, "@")
	repository, own := cutTag(image)
	have, haveTag := cutTag(reference)
	if have != repository && !strings.HasSuffix(have, "/"+repository) {
		return false
	}
	return tag != "" || cmp.Or(own, "latest") == haveTag
}

// cutTag splits an image name into repository and tag. The port of a registry is not a tag.
func cutTag(image string) (repository, tag string) {
	colon := strings.LastIndexByte(image, ':')
	if colon < 0 || strings.Contains(image[colon:], "/") {
		return image, ""
	}
	return image[:colon], image[colon+1:]
}
