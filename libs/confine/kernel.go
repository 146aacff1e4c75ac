// SPDX-License-Identifier: Apache-2.0

package confine

// The versions of Landlock's interface in which something came that is used here.
const (
	abiFiles     = 1 // rules for files; no tracing across domains
	abiRefer     = 2 // renaming from one directory to another
	abiTruncate  = 3
	abiIoctl     = 5
	abiScopes    = 6 // no signals and no abstract sockets across domains
	newestNeeded = abiScopes
)

// kernel is what the running kernel, and the container around this program, allow.
type kernel struct {
	abi     int  // of Landlock, 0 without
	seccomp bool // filters
}

// lacks returns what this kernel cannot hold back at all.
func (k kernel) lacks() []string {
	var lacks []string
	if k.abi < abiFiles {
		lacks = append(lacks,
			"Landlock (Linux 5.13): functions can use every file that this program can, and look into each other")
	}
	if !k.seccomp {
		lacks = append(lacks, "seccomp filters: functions can use the network and every system call")
	}
	return lacks
}

// replaced returns what this kernel holds back in another way than the newest ones, at the
// price that is named.
func (k kernel) replaced() []string {
	if k.abi >= newestNeeded || !k.seccomp {
		return nil
	}
	return []string{"Landlock's signal scope (Linux 6.12): functions cannot signal single processes " +
		"that they start, and may signal threads of other functions"}
}
