// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// labelManagedBy marks a Secret as ours, with managedBy as its value.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = podspec.FieldManager
	// annotationCopyOf names the file that the Secret is a copy of.
	annotationCopyOf = "krm-function-runner.github.io/copy-of"
	// keySum is where the Secret has the checksum of what we wrote, so that a change
	// by hand can be distinguished from the work of another replica. It stands among the data
	// since it would help to guess a weak password.
	keySum = "sha256"
)

// step is what to do about the Secret.
type step int

const (
	nothing step = iota
	create
	update
)

// plan decides what to do, given the Secret that is there, nil if there is none, and the
// content that it has to have. Changed is whether the file has changed since this replica last
// wrote it. Remark is why an existing
// Secret is replaced; it may be empty.
//
// The replicas' files change up to a minute apart. So the replica that sees a change
// writes it, and the others keep what a replica wrote until their own file changes.
func plan(found *corev1.Secret, content []byte, changed bool) (do step, remark string, err error) {
	if found == nil {
		return create, "", nil
	}
	if found.Type != corev1.SecretTypeDockerConfigJson {
		return nothing, "", fmt.Errorf("a Secret of that name exists that has type %q and not %q: "+
			"delete it, or set another name in --registry-auth-secret-name of function-runner",
			found.Type, corev1.SecretTypeDockerConfigJson)
	}
	ours := found.Labels[labelManagedBy] == managedBy
	intact := bytes.Equal(found.Data[keySum], sum(found.Data[corev1.DockerConfigJsonKey]))
	same := bytes.Equal(found.Data[corev1.DockerConfigJsonKey], content)
	switch {
	case !ours:
		return update, "it was not made by this program; Porch's own function runner makes one", nil
	case !intact:
		return update, "its data was changed from outside", nil
	case same, !changed:
		return nothing, "", nil
	default:
		return update, "", nil
	}
}

// sum is the checksum of a content.
func sum(content []byte) []byte {
	s := sha256.Sum256(content)
	return []byte(hex.EncodeToString(s[:]))
}

// secret returns the wanted pull secret: a new one, or the existing one with another content.
// Labels and annotations from other sources are kept.
func secret(found *corev1.Secret, name, path string, content []byte) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeDockerConfigJson}
	if found != nil {
		s = found.DeepCopy()
	}
	metav1.SetMetaDataLabel(&s.ObjectMeta, labelManagedBy, managedBy)
	metav1.SetMetaDataAnnotation(&s.ObjectMeta, annotationCopyOf, path)
	s.Data = map[string][]byte{corev1.DockerConfigJsonKey: content, keySum: sum(content)}
	return s
}
