// SPDX-License-Identifier: Apache-2.0

// Package config writes the certificates, tokens and configuration files that a cluster's programs read.
package config

import (
	"bytes"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"text/template"

	"github.com/krm-function-runner/function-runner/test/cluster/internal/layout"
)

//go:embed templates
var files embed.FS

var templates = template.Must(template.ParseFS(files, "templates/*"))

// view contains the data for the templates of the components' configuration files.
type view struct {
	layout.Layout
	// MasqueradeAll makes kube-proxy replace the source address of all connections to Services by the node's address.
	MasqueradeAll bool
}

func (view) NodeName() string         { return layout.NodeName }
func (view) NodeAddress() string      { return layout.NodeAddress }
func (view) DNSAddress() string       { return layout.DNSAddress }
func (view) Domain() string           { return layout.Domain }
func (view) PodCIDR() string          { return layout.PodCIDR }
func (view) ContainerdSocket() string { return layout.ContainerdSocket }
func (view) PauseImage() string       { return PauseImage }

// PauseImage is the image of the pause process, which keeps the namespaces of a pod alive.
var PauseImage = layout.Open.Host() + "/pause:latest"

// Write writes all configuration files of a cluster. bridgesFiltered is the result of space.FilterBridges. If it is
// false, kube-proxy replaces callers' addresses by the node's address. Answers then return through the node.
func Write(l layout.Layout, secrets Secrets, bridgesFiltered bool) error {
	for _, dir := range []string{l.Path("pki"), l.Config("cni"), l.Config("certs.d"), l.Logs()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("make the directories of cluster %s: %w", l.Name, err)
		}
	}
	authority, err := writeCertificates(l)
	if err != nil {
		return err
	}
	if err := writeComponents(view{Layout: l, MasqueradeAll: !bridgesFiltered}); err != nil {
		return err
	}
	if err := writeAccess(l, secrets, authority); err != nil {
		return err
	}
	return writeRegistries(l, secrets)
}

func writeComponents(data view) error {
	for _, name := range []string{
		"audit.yaml", "kubelet.yaml", "kube-proxy.yaml", "containerd.toml", "Corefile",
		"resolv.conf",
	} {
		if err := renderFile(data.Config(name), name, data, 0o644); err != nil {
			return err
		}
	}
	return renderFile(data.Config("cni/10-pods.conflist"), "cni.conflist", data, 0o644)
}

// renderFile writes a rendered template to path. It creates the directory if necessary.
func renderFile(path, name string, data any, mode os.FileMode) error {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, name, data); err != nil {
		return fmt.Errorf("render %s: %w", name, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.WriteFile(path, out.Bytes(), mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
