// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"os"
	"path"
)

// walk descends from a root directory. It keeps the directories on its path open, so that an operation in the last
// directory costs the same at any depth. An operation from the root would open all of them again.
type walk struct {
	root *os.Root
	open []*os.Root
	at   string // path of the last directory
}

// dir returns the directory that was reached.
func (w *walk) dir() *os.Root {
	if len(w.open) == 0 {
		return w.root
	}
	return w.open[len(w.open)-1]
}

// enter enters a subdirectory of the last directory.
func (w *walk) enter(name string) error {
	next, err := w.dir().OpenRoot(name)
	if err != nil {
		return err
	}
	w.open = append(w.open, next)
	w.at = path.Join(w.at, name)
	return nil
}

// leave returns to the parent of the last directory.
func (w *walk) leave() {
	_ = w.dir().Close()
	w.open = w.open[:len(w.open)-1]
	w.at = path.Dir(w.at)
}

func (w *walk) returnToRoot() {
	for len(w.open) > 0 {
		w.leave()
	}
}
