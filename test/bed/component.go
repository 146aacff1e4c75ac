// SPDX-License-Identifier: Apache-2.0

package bed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Component is a program of the cluster itself, such as the kubelet. The cluster restarts it after each exit.
type Component struct {
	name         string
	status, hold string // file paths
}

// Component returns the cluster's program with the given name. `cluster status` lists the names.
func (i Info) Component(name string) Component {
	return Component{name: name, status: i.Components, hold: filepath.Join(i.Holds, name)}
}

// Signal sends a signal to the program. The caller must run in the cluster's namespaces, because the process ID in the
// status file is valid only there.
func (c Component) Signal(signal unix.Signal) error {
	pid, err := c.pid()
	if err != nil {
		return err
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("find %s: %w", c.name, err)
	}
	defer unix.Close(fd)
	// If the ID is unchanged, the descriptor (pidfd) refers to the program. If the ID has changed, the program has exited,
	// and the descriptor may refer to another process with the old ID.
	if now, err := c.pid(); err != nil || now != pid {
		return errors.Join(fmt.Errorf("%s ended just now", c.name), err)
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil {
		return fmt.Errorf("send %s a signal: %w", c.name, err)
	}
	return nil
}

// Restart kills the program, and waits until it runs again.
func (c Component) Restart(ctx context.Context) error {
	before, err := c.pid()
	if err != nil {
		return err
	}
	if err := c.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return c.awaitProcess(ctx, func(pid int) bool { return pid != 0 && pid != before })
}

// Stop kills the program, and prevents its restart until Start is called.
func (c Component) Stop(ctx context.Context) error {
	if err := os.MkdirAll(filepath.Dir(c.hold), 0o700); err != nil {
		return fmt.Errorf("hold %s: %w", c.name, err)
	}
	if err := os.WriteFile(c.hold, nil, 0o600); err != nil {
		return fmt.Errorf("hold %s: %w", c.name, err)
	}
	if err := c.Signal(unix.SIGKILL); err != nil {
		return err
	}
	return c.awaitProcess(ctx, func(pid int) bool { return pid == 0 })
}

// Start starts a stopped program and waits until it runs.
func (c Component) Start(ctx context.Context) error {
	if err := os.Remove(c.hold); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("release %s: %w", c.name, err)
	}
	return c.awaitProcess(ctx, func(pid int) bool { return pid != 0 })
}

// pid returns the program's process ID. It returns an error if the program does not run.
func (c Component) pid() (int, error) {
	pid, err := c.readPID()
	if err == nil && pid == 0 {
		err = fmt.Errorf("%s does not run", c.name)
	}
	return pid, err
}

// readPID returns the program's process ID from the status file, or 0 if the program does not run.
func (c Component) readPID() (int, error) {
	content, err := os.ReadFile(c.status)
	if err != nil {
		return 0, fmt.Errorf("read the status of the components: %w", err)
	}
	type status struct {
		Name  string `json:"name"`
		State string `json:"state"`
		PID   int    `json:"pid"`
	}
	var all []status
	if err := json.Unmarshal(content, &all); err != nil {
		return 0, fmt.Errorf("read the status of the components in %s: %w", c.status, err)
	}
	i := slices.IndexFunc(all, func(s status) bool { return s.Name == c.name })
	if i < 0 {
		return 0, fmt.Errorf("the cluster has no component %q", c.name)
	}
	if all[i].State != "running" {
		return 0, nil
	}
	return all[i].PID, nil
}

// awaitProcess waits until wanted returns true for the program's process ID. The ID is 0 if the program does not run.
func (c Component) awaitProcess(ctx context.Context, wanted func(pid int) bool) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		pid, err := c.readPID()
		if err != nil || wanted(pid) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", c.name, context.Cause(ctx))
		}
	}
}
