// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	_ "embed"
	"fmt"
	"os/exec"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/build/images/image"
)

// identity is the source of a JavaScript function that returns its input. Tests use it to measure the start of Node.js.
//
//go:embed identity.js
var identity string

// nodeImage returns an image with a JavaScript function, and with this machine's Node.js and its shared libraries.
func nodeImage() (image.Spec, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return image.Spec{}, fmt.Errorf("find Node.js (Debian package nodejs): %w", err)
	}
	if node, err = filepath.EvalSymlinks(node); err != nil {
		return image.Spec{}, fmt.Errorf("find Node.js: %w", err)
	}
	files, err := image.NodeJS(node)
	if err != nil {
		return image.Spec{}, err
	}
	files = append(files, image.File{Path: "/function/index.js", Mode: 0o644, Content: identity})
	return image.Spec{
		Name:       "test/nodejs:v1",
		Files:      files,
		Entrypoint: []string{"/usr/bin/node", "/function/index.js"},
		User:       "65532",
	}, nil
}
