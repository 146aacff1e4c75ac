// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// kubeSource is the source of a program that contains all programs of Kubernetes. Like busybox, it selects a program by
// the name with which it is started.
//
//go:embed kube.go.txt
var kubeSource string

const kubernetesModule = "k8s.io/kubernetes"

// Kubernetes returns the component with Kubernetes. All its programs are links to the program in kubeSource.
func Kubernetes() Component {
	return Component{
		Name:    "kubernetes",
		Version: kubernetesVersion,
		Inputs:  []string{kubeSource, kubernetesFlags(kubernetesVersion)},
		Build:   buildKubernetes,
	}
}

func buildKubernetes(ctx context.Context, dir string) error {
	mod, err := kubeMod(ctx)
	if err != nil {
		return err
	}
	source := generatedModule{Mod: mod, Main: kubeSource, Flags: kubernetesFlags(kubernetesVersion)}
	if err := source.buildModule(ctx, dir); err != nil {
		return err
	}
	for _, name := range []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy",
		"kubelet", "kubectl",
	} {
		if err := os.Symlink("kube", filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("link %s: %w", name, err)
		}
	}
	return nil
}

// kubeMod returns the go.mod of a module that requires Kubernetes. It downloads Kubernetes' own go.mod for this.
func kubeMod(ctx context.Context) ([]byte, error) {
	published, err := downloadModule(ctx, kubernetesModule, kubernetesVersion)
	if err != nil {
		return nil, err
	}
	requirements, err := os.ReadFile(published.GoMod)
	if err != nil {
		return nil, fmt.Errorf("read the requirements of Kubernetes: %w", err)
	}
	return kubernetesMod(kubernetesVersion, requirements)
}

// kubernetesMod returns the go.mod of a module that requires k8s.io/kubernetes. It must replace the libraries of
// Kubernetes, because k8s.io/kubernetes requires them at v0.0.0, a version that was never published. The replacement of
// each library is its release for the same version of Kubernetes.
func kubernetesMod(version string, published []byte) ([]byte, error) {
	source, err := modfile.Parse("go.mod", published, nil)
	if err != nil {
		return nil, fmt.Errorf("parse the requirements of Kubernetes: %w", err)
	}
	library := "v0." + strings.TrimPrefix(version, "v1.")
	var out strings.Builder
	fmt.Fprintf(&out, "module kube\n\ngo %s\n\nrequire %s %s\n", source.Go.Version, kubernetesModule, version)
	for _, required := range source.Require {
		if required.Mod.Version == "v0.0.0" {
			fmt.Fprintf(&out, "\nreplace %s => %s %s\n", required.Mod.Path, required.Mod.Path, library)
		}
	}
	return []byte(out.String()), nil
}

// kubernetesFlags returns linker flags that set the version of Kubernetes. Its programs report and compare this
// version.
func kubernetesFlags(version string) string {
	const pkg = "k8s.io/component-base/version"
	minor := strings.TrimPrefix(semver.MajorMinor(version), "v1.")
	return fmt.Sprintf("%s -X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s", stripped, pkg, version,
		pkg, pkg, minor)
}
