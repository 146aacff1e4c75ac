// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cgroup

import (
	"errors"
	"syscall"
)

// entrance is how processes get into a group, which only Linux has.
type entrance struct{}

func (*entrance) members() string { return "" }
func (*entrance) thread() int     { return 0 }
func (*entrance) close() error    { return nil }

func (group *Group) open() error { return errors.ErrUnsupported }

// Start calls start.
func (group *Group) Start(_ *syscall.SysProcAttr, start func()) { start() }

func (group *Group) hold() error { return nil }

func isHeld(string) bool { return false }

func killMembers(string) {}

func mayUse(string, string) bool { return false }
