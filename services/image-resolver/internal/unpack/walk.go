// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"os"
	"path"
)

// walk is a way down from a root. It has the directories on it open, so that a look into the last one costs the same
// at any depth: from the root, each look opens all of them again.
type walk struct {
	root *os.Root
	open []*os.Root
	at   string // the path of the last one
}

// dir returns the directory that was reached.
func (w *walk) dir() *os.Root {
	if len(w.open) == 0 {
		return w.root
	}
	return w.open[len(w.open)-1]
}

// down goes on to a directory in the last one.
func (w *walk) down(name string) error {
	next, err := w.dir().OpenRoot(name)
	if err != nil {
		return err
	}
	w.open, w.at = append(w.open, next), path.Join(w.at, name)
	return nil
}

// up goes back to the directory above.
func (w *walk) up() {
	_ = w.dir().Close()
	w.open, w.at = w.open[:len(w.open)-1], path.Dir(w.at)
}

// top goes back to the root.
func (w *walk) top() {
	for len(w.open) > 0 {
		w.up()
	}
}
