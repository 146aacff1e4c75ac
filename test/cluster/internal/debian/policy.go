package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Debian's packages ask this program whether they may start their services.
const (
	policyFile = "/usr/sbin/policy-rc.d"
	savedFile  = policyFile + ".function-runner-saved"
)

// deny is a policy that answers "action not allowed" to every question.
const deny = "#!/bin/sh\nexit 101\n"

// policy remembers what was there before services were denied.
type policy struct {
	path, saved string
}

// denyServices keeps packages from starting services until restore is called.
func denyServices() (policy, error) { return newPolicy(policyFile, savedFile) }

func newPolicy(path, saved string) (policy, error) {
	p := policy{path: path, saved: saved}
	// A saved file that is there already is the original one: a former
	// installation was killed before it could put it back.
	if _, err := os.Lstat(saved); errors.Is(err, fs.ErrNotExist) {
		if err := os.Rename(path, saved); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return policy{}, fmt.Errorf("setting aside %s: %w", path, err)
		}
	}
	if err := os.WriteFile(path, []byte(deny), 0o755); err != nil {
		return policy{}, fmt.Errorf("denying services: %w", err)
	}
	return p, nil
}

// restore puts back the policy that was there, or none.
func (p policy) restore() error {
	err := os.Rename(p.saved, p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return os.Remove(p.path)
	}
	return err
}
