// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/libs/fault"
)

// Image contains the properties of an image that are needed to run it in a container.
type Image struct {
	// Digest is the digest of the image's manifest, which is for a single platform.
	Digest string
	// IndexDigest is the digest of the multi-platform index that contains the image. It is empty if there is no index.
	IndexDigest string
	Platform    Platform
	Entrypoint  []string
	Cmd         []string
	// Env is the environment, as KEY=value.
	Env        []string
	WorkingDir string
	User       string
	// PullCredentials is true if the registry required credentials for the image. Pods then need a pull secret.
	PullCredentials bool
}

// Command returns the command line of the image's containers, Entrypoint followed by Cmd.
func (i *Image) Command() []string { return slices.Concat(i.Entrypoint, i.Cmd) }

// TopDigest returns the digest to which the image's tags refer. It is IndexDigest if set, and otherwise Digest.
func (i *Image) TopDigest() string {
	if i.IndexDigest != "" {
		return i.IndexDigest
	}
	return i.Digest
}

// MemoryBytes estimates the memory that this struct occupies in a cache, in bytes.
func (i *Image) MemoryBytes() int64 {
	const fields, text = 400, 16
	n := fields + len(i.Digest) + len(i.IndexDigest) + len(i.WorkingDir) + len(i.User) +
		len(i.Platform.OS) + len(i.Platform.Architecture) + len(i.Platform.Variant)
	for _, list := range [][]string{i.Entrypoint, i.Cmd, i.Env} {
		for _, s := range list {
			n += text + len(s)
		}
	}
	return int64(n)
}

// ParseConfig returns the image with the manifest m and the given configuration. It rejects an image without a command.
// All errors are of class fault.Precondition.
func ParseConfig(m *Manifest, config []byte) (*Image, error) {
	var file struct {
		platform
		Config struct {
			Entrypoint, Cmd, Env list[string]
			WorkingDir, User     string
			Volumes              hidingVolume
		} `json:"config"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, invalidDocument("the image's configuration "+m.Config, err)
	}
	c := file.Config
	if len(c.Entrypoint)+len(c.Cmd) == 0 {
		return nil, fault.New(fault.Precondition,
			"the image has neither Entrypoint nor Cmd, so there is nothing to run: set ENTRYPOINT in its Dockerfile")
	}
	if c.Volumes != "" {
		return nil, fault.New(fault.Precondition, "the image has the volume %q, which hides the wrapper server in %s: "+
			"remove VOLUME from its Dockerfile", excerpt.Middle(string(c.Volumes), maxQuoted), toolsPath)
	}
	image := &Image{
		Digest:     m.Digest,
		Platform:   Platform(file.platform).normalize(),
		Entrypoint: c.Entrypoint,
		Cmd:        c.Cmd,
		Env:        c.Env,
		WorkingDir: c.WorkingDir,
		User:       c.User,
	}
	if err := image.checkTexts(); err != nil {
		return nil, err
	}
	return image, nil
}

// checkTexts rejects an image with a zero byte in its command, environment, working directory or user. Programs
// cannot receive zero bytes, and could parse the text after a zero byte as a new string.
func (i *Image) checkTexts() error {
	texts := slices.Concat(i.Entrypoint, i.Cmd, i.Env, []string{i.WorkingDir, i.User})
	if !slices.ContainsFunc(texts, func(text string) bool { return strings.ContainsRune(text, 0) }) {
		return nil
	}
	return fault.New(fault.Precondition, "the image's configuration has a zero byte in its command, its environment, "+
		"its working directory or its user: build and push the image again")
}

// toolsPath is the directory in function pods that contains the wrapper server, which runs the function.
const toolsPath = "/wrapper-server-tools"

// hidingVolume is a volume of the image that would hide the wrapper server in function pods. The path of such a volume
// is toolsPath, a parent directory of it, or a path below it. It is empty if there is no such volume.
type hidingVolume string

// aboveTools matches JSON text that may contain the root directory as a key, such as "/". A volume there hides
// toolsPath. It also matches any backslash, because a backslash may be a part of an escaped key.
var aboveTools = regexp.MustCompile(`"[/.]*"|\\`)

// UnmarshalJSON searches the keys of a JSON object for a volume that hides the wrapper server. It decodes the
// object only if its text may contain such a key, because the object may be large.
func (h *hidingVolume) UnmarshalJSON(raw []byte) error {
	if !bytes.Contains(raw, []byte(toolsPath[1:])) && !aboveTools.Match(raw) {
		return nil
	}
	return readEntries(raw, func(volume string, in *json.Decoder) error {
		clean := strings.TrimSuffix(path.Clean("/"+volume), "/")
		above := strings.HasPrefix(toolsPath+"/", clean+"/") //nolint:gocritic // the volume is what varies
		if above || strings.HasPrefix(clean+"/", toolsPath+"/") {
			*h = hidingVolume(cmp.Or(volume, "/"))
		}
		return in.Decode(new(present))
	})
}

// RootFS is the part of an image's configuration that is needed to create the image's root file system.
type RootFS struct {
	// DiffIDs are the digests of the uncompressed layers, from the lowest layer to the highest.
	DiffIDs []string
	// WorkingDir is the working directory of containers. It may be missing in the layers.
	WorkingDir string
	// User is the name or number of the containers' user, optionally with a group, such as "1000:1000".
	User string
}

// ParseRootFS decodes an image's configuration. It returns an error if m lists a different number of layers.
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
