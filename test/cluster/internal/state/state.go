// SPDX-License-Identifier: Apache-2.0

// Package state reads and writes the state file of a cluster. The file identifies the cluster's first process, and
// contains the data that commands need to use the cluster.
package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

// State contains the data that commands need to use a cluster or to take it down.
type State struct {
	// Init is the first process of the cluster's namespaces.
	Init Process `json:"init"`
	// Ready is true once the cluster is ready for use.
	Ready bool `json:"ready"`
	// Config is the revision of the cluster's configuration. `cluster up` replaces a cluster whose revision differs.
	Config string `json:"config"`
	// Path is the search path (PATH) of the cluster's programs.
	Path string `json:"path"`
	// RegistryPassword is the password for the registries that require credentials.
	RegistryPassword string `json:"registryPassword"`
}

// ErrNone means that the cluster does not exist.
var ErrNone = errors.New("there is no such cluster")

// Load reads the state of a cluster. The error wraps ErrNone if the cluster has no state file.
func Load(l layout.Layout) (State, error) {
	content, err := os.ReadFile(file(l))
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, fmt.Errorf("cluster %s: %w", l.Name, ErrNone)
	}
	if err != nil {
		return State{}, fmt.Errorf("read the state of cluster %s: %w", l.Name, err)
	}
	var s State
	if err := json.Unmarshal(content, &s); err != nil {
		return State{}, fmt.Errorf("read the state of cluster %s (bring it up again, or take it down): %w", l.Name, err)
	}
	return s, nil
}

// Save writes the state of a cluster.
func Save(l layout.Layout, s State) error {
	if err := WriteJSON(file(l), s); err != nil {
		return fmt.Errorf("keep the state of cluster %s: %w", l.Name, err)
	}
	return nil
}

// WriteJSON writes a value as JSON to a file that only the owner can read. It replaces existing files atomically.
func WriteJSON(path string, value any) error {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	temp := filepath.Join(filepath.Dir(path), "."+filepath.Base(path))
	if err := os.WriteFile(temp, content, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}

func file(l layout.Layout) string { return l.Path("state.json") }
