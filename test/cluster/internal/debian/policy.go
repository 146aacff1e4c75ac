// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// policyFile is the path of the program that Debian's packages run before they start services. Its exit status
// permits or denies the start. savedFile is the path of the machine's own policy program while services are denied.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	savedFile  = policyFile + ".function-runner-saved"
)

// deny is a policy program that denies the start of all services by exit status 101.
const deny = "#!/bin/sh\nexit 101\n"

// policy contains the paths of Debian's policy program and of its saved original.
type policy struct {
	path, saved string
}

// denyServices prevents packages from starting services until restore is called.
func denyServices() (policy, error) { return newPolicy(policyFile, savedFile) }

func newPolicy(path, saved string) (policy, error) {
	p := policy{path: path, saved: saved}
	// No original program is saved yet. If an earlier installation was killed, its saved original must stay.
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

// restore restores the machine's original policy program, or removes the program that denies services.
func (p policy) restore() error {
	err := os.Rename(p.saved, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(p.path)
	}
	return err
}
