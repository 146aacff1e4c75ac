// SPDX-License-Identifier: Apache-2.0

//go:build linux

package confine

// WithKernel returns cfg for a kernel with that version of Landlock's interface, and with or
// without seccomp filters. It must not be newer than the one that runs.
func (cfg Config) WithKernel(abi int, seccomp bool) Config {
	cfg.kernel = &kernel{abi: abi, seccomp: seccomp}
	return cfg
}
