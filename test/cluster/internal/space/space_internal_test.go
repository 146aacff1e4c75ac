// SPDX-License-Identifier: Apache-2.0

package space

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCallersDescriptorsStayBehind has a descriptor as a caller passes it on. The command runs without namespaces,
// which need root.
func TestCallersDescriptorsStayBehind(t *testing.T) {
	fd, err := unix.FcntlInt(os.Stdin.Fd(), unix.F_DUPFD, 100) // no descriptor that ls opens itself
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	command := Command("ls", "/proc/self/fd")
	command.SysProcAttr.Cloneflags = 0
	output, err := command.Output()
	if err != nil || strings.Contains("\n"+string(output), "\n"+strconv.Itoa(fd)+"\n") {
		t.Errorf("%v, the command has the descriptors %q, also %d of its parent's caller", err, output, fd)
	}
}
