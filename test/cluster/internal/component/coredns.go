package component

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
)

//go:embed coredns.go.txt
var coreDNSSource string

// CoreDNS is the cluster's name server.
func CoreDNS() Component {
	const version = "v1.14.1"
	source := generated{
		Mod:   fmt.Appendf(nil, "module coredns\n\ngo 1.26.0\n\nrequire github.com/coredns/coredns %s\n", version),
		Main:  coreDNSSource,
		Flags: stripped,
	}
	return Component{
		Name:    "coredns",
		Version: version,
		Inputs:  []string{source.Main, string(source.Mod), source.Flags},
		Build: func(ctx context.Context, dir string) error {
			return source.build(ctx, filepath.Join(dir, "coredns"))
		},
	}
}
