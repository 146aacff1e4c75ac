// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Debian packages run the program policyFile before they start services. The program's exit status permits or denies
// the start. If the machine has such a program, this package keeps it in savedFile while it denies services.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	savedFile  = policyFile + ".function-runner-saved"
)

// deny is a shell script that denies the start of all services, by exit status 101.
const deny = "#!/bin/sh\nexit 101\n"

// policy contains the paths of the policy program and of the saved original.
type policy struct {
	path, saved string
}

// denyServices prevents Debian packages from starting services until restore is called.
func denyServices() (policy, error) { return newPolicy(policyFile, savedFile) }

func newPolicy(path, saved string) (policy, error) {
	p := policy{path: path, saved: saved}
	// Save the machine's own program only if the file saved does not exist. If the file exists, an earlier installation
	// was interrupted, and path still contains the program that denies services.
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

// restore restores the machine's own policy program. If there was none, it removes the program that denies services.
func (p policy) restore() error {
	err := os.Rename(p.saved, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(p.path)
	}
	return err
}
