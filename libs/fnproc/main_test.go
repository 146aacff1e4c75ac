// SPDX-License-Identifier: Apache-2.0

package fnproc_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/krm-function-runner/function-runner/libs/fnproc"
	"github.com/krm-function-runner/function-runner/libs/testing/testfn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Limits of the tests in bytes.
const (
	maxOutput = 16 << 20
	maxLog    = 1 << 20
)

// install puts a test function into a new directory and returns the command to run it
// and the directory.
func install(t testing.TB, name string) (cmd fnproc.Command, dir string) {
	t.Helper()
	dir = t.TempDir()
	testfn.Install(t, dir, name)
	return fnproc.Command{Path: dir + "/" + name, MaxOutput: maxOutput, MaxLog: maxLog}, dir
}
