// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/imagename"
)

// catalog is the prefix that kpt, and by default each gateway, prepends to images without a slash.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// exactTag matches exact tags such as v0.4.5. All other values of the field tag are constraints such as ~0.4.
var exactTag = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)

// ImageName returns an image's full name with registry and tag, as kpt writes it. If the argument tag is a version
// constraint, ImageName ignores it, because only a gateway can select a tag for a constraint.
func ImageName(image, tag string) string {
	if image == "" {
		return ""
	}
	if !strings.Contains(image, "/") {
		image = catalog + image
	}
	slash := strings.LastIndexByte(image, '/')
	named, _, _ := strings.Cut(image[slash:], "@")
	switch {
	case exactTag.MatchString(tag):
		named, _, _ = strings.Cut(named, ":")
		return image[:slash] + named + ":" + tag
	case tag == "" && !strings.ContainsAny(image[slash:], ":@"):
		return image + ":latest"
	}
	return image
}

// ShortName returns an image's name without the registry of kpt's function catalog, which users may omit.
func ShortName(image string) string { return strings.TrimPrefix(image, catalog) }

// MayMean reports whether a user's name image may mean the gateway's image name reference. The user may have omitted
// the registry and directories. If tag is set, reference may have any tag, because tag may be a constraint.
func MayMean(reference, image, tag string) bool {
	image, _, _ = strings.Cut(image, "@")
	repository, own := imagename.SplitTag(image)
	have, haveTag := imagename.SplitTag(reference)
	if have != repository && !strings.HasSuffix(have, "/"+repository) {
		return false
	}
	return tag != "" || cmp.Or(own, "latest") == haveTag
}
