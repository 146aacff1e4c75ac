// SPDX-License-Identifier: Apache-2.0

// Package pinned names images by digest in manifests, in place of their tags.
package pinned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// tag is the tag of an image in kustomize's list, after its new name; image is one in a manifest.
var (
	tag   = regexp.MustCompile(`(?m)^( *newName: (\S+)/([a-z-]+) .*\n *)newTag: .*$`)
	image = regexp.MustCompile(`(?m)^( *(?:- )?image: (\S+)/([a-z-]+)):\S+ # kpt-set: (\S+/[a-z-]+):\S+$`)
	// setter is the tag among the values to set, which nothing uses any more.
	setter = regexp.MustCompile(`(?m)^  # The repository and tag of the images\.\n(  registry: .*\n)  tag: .*\n`)
)

// Text pins the images of the project in a file, by their digests.
func Text(content string, digests map[string]string) (string, error) {
	var missing error
	digest := func(program string) string {
		found, ok := digests[program]
		if !ok {
			missing = errors.Join(missing, fmt.Errorf("the release has no image %s", program))
		}
		return found
	}
	content = tag.ReplaceAllStringFunc(content, func(entry string) string {
		parts := tag.FindStringSubmatch(entry)
		return parts[1] + "digest: " + digest(parts[3])
	})
	content = image.ReplaceAllStringFunc(content, func(line string) string {
		parts := image.FindStringSubmatch(line)
		pin := "@" + digest(parts[3])
		return parts[1] + pin + " # kpt-set: " + parts[4] + pin
	})
	content = setter.ReplaceAllString(content, "  # The repository of the images.\n$1")
	if strings.Contains(content, "${tag}") {
		missing = errors.Join(missing, errors.New("a tag is left"))
	}
	return content, missing
}

// Tree pins the images in all files of a directory.
func Tree(dir string, digests map[string]string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed, err := Text(string(content), digests)
		if err != nil {
			return fmt.Errorf("name images by digest in %s: %w", path, err)
		}
		if changed == string(content) {
			return nil
		}
		return os.WriteFile(path, []byte(changed), 0o600)
	})
}
