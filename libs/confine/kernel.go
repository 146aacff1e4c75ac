// SPDX-License-Identifier: Apache-2.0

package confine

// Versions of Landlock's interface that introduced the features used here.
const (
	abiFiles     = 1 // rules for files; no tracing across domains
	abiRefer     = 2 // renaming across directories
	abiTruncate  = 3
	abiIoctl     = 5
	abiScopes    = 6 // no signals and no abstract sockets across domains
	newestNeeded = abiScopes
)

// kernel describes which restrictions the running kernel supports and the container permits.
type kernel struct {
	abi     int  // version of Landlock, or 0 without Landlock
	seccomp bool // true if seccomp filters can be loaded
}

// missingFeatures returns descriptions of the restrictions that this kernel lacks.
func (k kernel) missingFeatures() []string {
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

// replacedFeatures returns the restrictions that this kernel enforces in a weaker way than newer kernels, with the
// drawbacks.
func (k kernel) replacedFeatures() []string {
	if k.abi >= newestNeeded || !k.seccomp {
		return nil
	}
	return []string{"Landlock's signal scope (Linux 6.12): functions cannot signal single processes " +
		"that they start, and may signal threads of other functions"}
}
