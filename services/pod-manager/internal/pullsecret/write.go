// SPDX-License-Identifier: Apache-2.0

package pullsecret

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// syncTimeout limits an attempt to make the pull secret equal to the file.
	syncTimeout = 5 * time.Second
	// maxConflicts is the maximum number of attempts to write the pull secret while other replicas write it too.
	maxConflicts = 5
)

// syncSecret writes the docker configuration file to the pull secret, unless the Secret is up to date.
func (k *Keeper) syncSecret(ctx context.Context) error {
	if k.content == nil {
		return k.cause
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	var err error
	for range maxConflicts {
		var raced bool
		if raced, err = k.compareAndWrite(ctx); !raced {
			break
		}
	}
	k.changed = k.changed && err != nil
	return err
}

// unseenError means that the pull secret could not be read. The Secret may nevertheless exist and be valid.
type unseenError struct{ error }

// Unwrap returns the cause.
func (e unseenError) Unwrap() error { return e.error }

// compareAndWrite reads the pull secret, and writes it if its content differs from the file. raced is true if
// another client wrote the Secret between the read and the write, so that the caller must try again.
func (k *Keeper) compareAndWrite(ctx context.Context) (raced bool, err error) {
	found, err := k.config.Secrets.Get(ctx, k.config.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		found, err = nil, nil
	}
	if err != nil {
		return false, unseenError{fmt.Errorf("read it: %w", err)}
	}
	do, remark, err := planStep(found, k.content, k.changed)
	if remark != "" {
		k.config.Log.WarnContext(ctx, "replacing the pull secret", "reason", remark,
			"namespace", k.config.Namespace, "secret", k.config.Name)
	}
	wanted := wantedSecret(found, k.config.Name, k.config.Path, k.content)
	switch {
	case err != nil || do == nothing:
		return false, err
	case do == create:
		_, err = k.config.Secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: podspec.FieldManager})
		raced = apierrors.IsAlreadyExists(err)
	default:
		_, err = k.config.Secrets.Update(ctx, wanted, metav1.UpdateOptions{FieldManager: podspec.FieldManager})
		raced = apierrors.IsConflict(err) || apierrors.IsNotFound(err)
	}
	k.metrics.countWrite(ctx, err)
	if err != nil {
		return raced, fmt.Errorf("write it: %w", err)
	}
	k.config.Log.InfoContext(ctx, "wrote the pull secret", "from", k.config.Path,
		"namespace", k.config.Namespace, "secret", k.config.Name)
	return false, nil
}
