// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/kubernetes"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// HasImageVolumes reports whether the API server supports image volumes. It creates a pod like
// later ones in a dry run: a server without image volumes drops the field. If the server refuses
// the pod, for example because a quota is used up, its version decides.
//
// Image volume support of nodes cannot be read without rights on nodes: see [Trial].
func HasImageVolumes(ctx context.Context, client kubernetes.Interface, builder podspec.Builder, defaults podspec.Defaults) (bool, error) {
	pod := volumePod(builder, defaults)
	err := withRetries(ctx, func(ctx context.Context) (err error) {
		created, err := client.CoreV1().Pods(builder.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			pod = created
		}
		return err
	})
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
		return hasVersion(ctx, client)
	}
	if err != nil {
		return false, fmt.Errorf("ask the Kubernetes API whether it has image volumes (not asked if the launcher is set): %w", err)
	}
	for _, volume := range pod.Spec.Volumes {
		if volume.Image != nil {
			return true, nil
		}
	}
	return false, nil
}

// volumePod is a pod of the wrapper server's image that mounts that image too.
func volumePod(builder podspec.Builder, defaults podspec.Defaults) *corev1.Pod {
	defaults.Launcher = podspec.ImageVolume
	pod := builder.Pod(podspec.Request{
		Function: podspec.Function{Reference: defaults.WrapperImage},
		Template: podspec.Default(defaults), Slot: 1,
	})
	pod.GenerateName = "image-volumes-"
	return pod
}

// firstMinor is the first minor version of Kubernetes that has image volumes unless
// the cluster's feature gates disable them.
const firstMinor = 35

// hasVersion reports whether the API server's version has image volumes.
func hasVersion(ctx context.Context, client kubernetes.Interface) (bool, error) {
	var found *version.Info
	err := withRetries(ctx, func(context.Context) (err error) {
		found, err = client.Discovery().ServerVersion()
		return err
	})
	if err != nil {
		return false, fmt.Errorf("ask the Kubernetes API for its version: %w", err)
	}
	// Some distributions write "35+".
	minor, err := strconv.Atoi(strings.TrimRight(found.Minor, "+"))
	if err != nil {
		return false, fmt.Errorf("the Kubernetes API has the version %s, from which nothing follows about image volumes: set the launcher", found)
	}
	return found.Major != "1" || minor >= firstMinor, nil
}
