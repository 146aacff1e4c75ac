// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Debian's packages run this program to find out whether they may start their services.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	savedFile  = policyFile + ".function-runner-saved"
)

// deny is a policy that answers "action not allowed" to every question.
const deny = "#!/bin/sh\nexit 101\n"

// policy remembers the policy from before services were denied.
type policy struct {
	path, saved string
}

// denyServices prevents packages from starting services until restore is called.
func denyServices() (policy, error) { return newPolicy(policyFile, savedFile) }

func newPolicy(path, saved string) (policy, error) {
	p := policy{path: path, saved: saved}
	// An existing saved file is the original: an earlier installation was killed before it could restore the file.
	if _, err := os.Lstat(saved); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(path, saved); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return policy{}, fmt.Errorf("set aside %s: %w", path, err)
		}
	}
	if err := os.WriteFile(path, []byte(deny), 0o755); err != nil {
		return policy{}, fmt.Errorf("deny services: %w", err)
	}
	return p, nil
}

// restore restores the original policy, or none.
func (p policy) restore() error {
	err := os.Rename(p.saved, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(p.path)
	}
	return err
}
