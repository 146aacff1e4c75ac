// SPDX-License-Identifier: Apache-2.0

package component

import (
	_ "embed"
	"fmt"
)

//go:embed coredns.go.txt
var coreDNSSource string

// CoreDNS returns the component with CoreDNS, the cluster's name server.
func CoreDNS() Component {
	const version = "v1.14.1"
	return newComponent("coredns", version, generatedModule{
		Mod:   fmt.Appendf(nil, "module coredns\n\ngo 1.26.0\n\nrequire github.com/coredns/coredns %s\n", version),
		Main:  coreDNSSource,
		Flags: stripped,
	})
}
