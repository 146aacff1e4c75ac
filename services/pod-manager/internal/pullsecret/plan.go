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
	// labelManagedBy is the label that marks a Secret of this program. Its value is managedBy.
	labelManagedBy = "app.kubernetes.io/managed-by"
	managedBy      = podspec.FieldManager
	// annotationCopyOf is the annotation with the path of the file whose content is in the Secret.
	annotationCopyOf = "krm-function-runner.github.io/copy-of"
	// keySum is the key of the checksum that a replica writes together with the content. If the checksum matches, a
	// replica wrote the content. If it does not match, a user changed the content. The checksum is part of the secret
	// data, and not an annotation, because it would help to guess a weak password.
	keySum = "sha256"
)

// step is the operation that makes the pull secret up to date: nothing, create or update.
type step int

const (
	nothing step = iota
	create
	update
)

// planStep returns the operation that gives the pull secret the intended content. found is the existing Secret, or
// nil. changed is true if the docker configuration file changed since this replica's last write. remark is the
// reason that an existing Secret is replaced. It may be empty.
//
// A change reaches the files of different replicas up to a minute apart. A replica whose own file has not changed
// keeps the Secret, because otherwise it would undo the write of a replica with the newer file.
func planStep(found *corev1.Secret, content []byte, changed bool) (do step, remark string, err error) {
	if found == nil {
		return create, "", nil
	}
	if found.Type != corev1.SecretTypeDockerConfigJson {
		return nothing, "", fmt.Errorf("a Secret of that name exists that has type %q and not %q: "+
			"delete it, or set another name in --registry-auth-secret-name of function-runner",
			found.Type, corev1.SecretTypeDockerConfigJson)
	}
	ours := found.Labels[labelManagedBy] == managedBy
	intact := bytes.Equal(found.Data[keySum], checksum(found.Data[corev1.DockerConfigJsonKey]))
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

func checksum(content []byte) []byte {
	s := sha256.Sum256(content)
	return []byte(hex.EncodeToString(s[:]))
}

// wantedSecret returns the pull secret with the given content. found is the existing Secret, and may be nil. The
// result keeps all other labels and annotations of found.
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
