// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"encoding/json"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// RootFS is the part of an image's configuration about its files.
type RootFS struct {
	// DiffIDs are the digests of the uncompressed layers, the lowest first.
	DiffIDs []string
	// WorkingDir is the working directory of containers. It may not exist.
	WorkingDir string
	// User is the user of containers, by name or number, with a group or without.
	User string
}

// ParseRootFS reads the configuration of m.
func ParseRootFS(m *Manifest, config []byte) (RootFS, error) {
	var file struct {
		RootFS struct {
			DiffIDs list[v1.Hash] `json:"diff_ids"`
		} `json:"rootfs"`
		Config struct {
			WorkingDir, User string
		} `json:"config"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return RootFS{}, invalidDocument("the image's configuration "+m.Config, err)
	}
	out := RootFS{WorkingDir: file.Config.WorkingDir, User: file.Config.User}
	for _, id := range file.RootFS.DiffIDs {
		out.DiffIDs = append(out.DiffIDs, id.String())
	}
	if len(out.DiffIDs) != len(m.Layers) {
		return RootFS{}, fault.New(fault.Precondition,
			"the manifest has %d layers, and the configuration %d: push the image again", len(m.Layers), len(out.DiffIDs))
	}
	return out, nil
}
