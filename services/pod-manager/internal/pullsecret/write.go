// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/kubeclient"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// syncTimeout limits an attempt to copy the docker configuration file to the pull secret.
	syncTimeout = 5 * time.Second
	// propagationTime is the maximum time until a changed docker configuration file reaches all replicas. The file is part
	// of a mounted Secret, which kubelets update about once a minute.
	propagationTime = 2 * time.Minute
)

// syncSecret copies the docker configuration file to the pull secret, unless the Secret is up to date.
func (k *Keeper) syncSecret(ctx context.Context) error {
	if k.content == nil {
		return k.cause
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	raced := func(err error) bool {
		return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err)
	}
	err := retry.OnError(retry.DefaultRetry, raced, func() error { return k.compareAndWrite(ctx) })
	k.changed = k.changed && err != nil
	return err
}

// requestError is the error of a request to the Kubernetes API. unseen is true if the pull secret could not be read.
// The content of an existing Secret is then unknown, and may be valid.
type requestError struct {
	error
	unseen bool
}

// Unwrap returns the cause.
func (e requestError) Unwrap() error { return e.error }

// compareAndWrite reads the pull secret, and writes it if its content differs from the file.
func (k *Keeper) compareAndWrite(ctx context.Context) error {
	found, err := k.config.Secrets.Get(ctx, k.config.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = nil, nil
	}
	if err != nil {
		return requestError{fmt.Errorf("read it: %w", err), true}
	}
	overdue := k.differsTooLong(found)
	write, remark, err := mustWrite(found, k.content, k.changed || overdue)
	if remark != "" {
		k.config.Log.WarnContext(ctx, "replacing the pull secret", "reason", remark,
			"namespace", k.config.Namespace, "secret", k.config.Name)
	}
	wanted := wantedSecret(found, k.config.Name, k.config.Path, k.content)
	switch {
	case err != nil || !write:
		return err
	case found == nil:
		_, err = k.config.Secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: podspec.FieldManager})
	default:
		_, err = k.config.Secrets.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: podspec.FieldManager})
	}
	k.writes.Add(ctx, 1, metric.WithAttributes(attribute.String("outcome", kubeclient.Outcome(err))))
	if err != nil {
		return requestError{fmt.Errorf("write it: %w", err), false}
	}
	k.differsSince = time.Time{}
	k.repaired = k.repaired || overdue
	k.config.Log.InfoContext(ctx, "wrote the pull secret", "from", k.config.Path,
		"namespace", k.config.Namespace, "secret", k.config.Name)
	return nil
}

const (
	// labelManagedBy is the label that marks a Secret of this program. Its value is managedBy.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = podspec.FieldManager
	// annotationCopyOf is the annotation with the path of the file from which the Secret is copied.
	annotationCopyOf = "krm-function-runner.github.io/copy-of"
	// keySum is the key of the checksum of the content in the Secret. A mismatch shows that a user changed the content.
	// The checksum is secret data, not an annotation, because it would help an attacker to guess a weak password.
	keySum = "sha256"
)

// differsTooLong reports whether the pull secret has differed from the file for over 2 minutes (propagationTime). The
// argument found is the existing Secret, or nil. After a replacement for this reason, the result is false until the
// file changes. Otherwise, replicas with different files would overwrite each other's credentials forever.
func (k *Keeper) differsTooLong(found *corev1.Secret) bool {
	switch {
	case found == nil || bytes.Equal(found.Data[corev1.DockerConfigJsonKey], k.content):
		k.differsSince = time.Time{}
		return false
	case k.differsSince.IsZero():
		k.differsSince = time.Now()
	}
	return !k.repaired && time.Since(k.differsSince) >= propagationTime
}

// mustWrite reports whether the pull secret must be written. The argument found is the existing Secret, or nil. The
// argument newer is true if the docker configuration file changed since this replica's last write, or differed from the
// Secret for longer than propagationTime. The result remark is the reason for the log if an existing Secret is
// replaced. It may be empty.
//
// A change of the file reaches replicas up to a minute apart. A replica whose own file has not changed keeps the
// Secret. Otherwise, it would undo the write of a replica that already has the newer file.
func mustWrite(found *corev1.Secret, content []byte, newer bool) (write bool, remark string, err error) {
	if found == nil {
		return true, "", nil
	}
	if found.Type != corev1.SecretTypeDockerConfigJson {
		return false, "", fmt.Errorf("a Secret of that name exists that has type %q and not %q: "+
			"delete it, or set another name in --registry-auth-secret-name of function-runner",
			found.Type, corev1.SecretTypeDockerConfigJson)
	}
	ours := found.Labels[labelManagedBy] == managedBy
	intact := bytes.Equal(found.Data[keySum], checksum(found.Data[corev1.DockerConfigJsonKey]))
	same := bytes.Equal(found.Data[corev1.DockerConfigJsonKey], content)
	switch {
	case !ours:
		return true, "it was not made by this program; Porch's own function runner makes one", nil
	case !intact:
		return true, "its data was changed from outside", nil
	case same, !newer:
		return false, "", nil
	default:
		return true, "", nil
	}
}

func checksum(content []byte) []byte {
	s := sha256.Sum256(content)
	return []byte(hex.EncodeToString(s[:]))
}

// wantedSecret returns the pull secret with the given content. If a Secret exists (found is not nil), the result keeps
// all labels and annotations that wantedSecret does not set.
func wantedSecret(found *corev1.Secret, name, path string, content []byte) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson}
	if found != nil {
		s = found.DeepCopy()
	}
	metav1.SetMetaDataLabel(&s.ObjectMeta, labelManagedBy, managedBy)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotationCopyOf, path)
	s.Data = map[string][]byte{corev1.DockerConfigJsonKey: content, keySum: checksum(content)}
	return s
}
