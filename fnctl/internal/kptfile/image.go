// SPDX-License-Identifier: Apache-2.0

package kptfile

import (
	"regexp"
	"strings"
)

// catalog is kpt's own prefix of images without a repository. It is also the gateways' prefix unless
// their configuration says otherwise.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

// exactTag matches tags. All other values of the field are constraints.
var exactTag = regexp.MustCompile(`^[\w][\w.-]{0,127}$`)

// ImageName returns an image's full name as kpt writes it, as far as that is possible without the
// gateway: a tag that is a constraint is left out.
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

// ShortName returns an image's name without kpt's own prefix.
func ShortName(image string) string { return strings.TrimPrefix(image, catalog) }
