// SPDX-License-Identifier: Apache-2.0

// Package pods describes function pods to users: the pods of each function, and their changes. It makes no requests.
package pods

import (
	"cmp"
	"strings"

	"github.com/krm-function-runner/function-runner/fnctl/internal/kptfile"
)

// Is reports whether an image's full name may belong to the image of a call. It ignores the gateway's default prefix.
// If tag is set, it is a tag or constraint that replaces the image's own tag, and Is accepts every tag of the
// reference.
func Is(reference, image, tag string) bool {
	image, _, _ = strings.Cut(image, "@")
	repository, own := kptfile.CutTag(image)
	have, haveTag := kptfile.CutTag(reference)
	if have != repository && !strings.HasSuffix(have, "/"+repository) {
		return false
	}
	return tag != "" || cmp.Or(own, "latest") == haveTag
}
