// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// change modifies the data of a Secret. The returned function written is nil if nothing changed. Otherwise, the caller
// must store the data and then call written.
type change func(data map[string][]byte) (written func(), err error)

// updateSecret applies a change to a Secret, and retries after conflicts with other replicas.
func (i *Issuer) updateSecret(ctx context.Context, name string, change change) error {
	raced := func(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
	err := retry.OnError(retry.DefaultRetry, raced, func() error { return i.compareAndWrite(ctx, name, change) })
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("the Secret %s does not exist: create it without data, as the manifests do: %w", name, err)
	}
	if err != nil {
		return fmt.Errorf("update the Secret %s: %w", name, err)
	}
	return nil
}

// compareAndWrite reads a Secret, applies change to its data, and stores changed data. It does not retry after a
// conflict.
func (i *Issuer) compareAndWrite(ctx context.Context, name string, change change) error {
	secret, err := i.config.Secrets.Get(ctx, name, metav1.GetOptions{})
	missing := i.config.Create && name == i.config.Authority && apierrors.IsNotFound(err)
	if missing {
		secret, err = i.newAuthoritySecret(), nil
	}
	if err != nil {
		return err
	}
	data := maps.Clone(secret.Data)
	if data == nil {
		data = make(map[string][]byte, 3)
	}
	written, err := change(data)
	if err != nil {
		return err
	}
	if written == nil {
		return nil
	}
	secret = secret.DeepCopy()
	secret.Data = data
	if missing {
		_, err = i.config.Secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: podspec.FieldManager})
	} else { // the update fails if the Secret changed since it was read
		_, err = i.config.Secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: podspec.FieldManager})
	}
	if err == nil {
		written()
	}
	return err
}

// newAuthoritySecret returns an empty Secret for the authorities.
func (i *Issuer) newAuthoritySecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: i.config.Authority,
		Labels: map[string]string{
			"app.kubernetes.io/managed-by": podspec.FieldManager, "app.kubernetes.io/part-of": "function-runner",
		},
	}}
}
