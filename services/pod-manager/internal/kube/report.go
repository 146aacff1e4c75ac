// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/krm-function-runner/function-runner/libs/excerpt"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

const (
	// eventTimeout bounds writing an event.
	eventTimeout = 5 * time.Second
	// maxEventMessage is what the API takes as the message of an event, in bytes.
	maxEventMessage = 1000
)

// reportBroken writes an event about an object that is broken. That may not be permitted: the
// log has it anyway.
func (c *PorchResources) reportBroken(ctx context.Context, u *unstructured.Unstructured, problem error) {
	if u == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, eventTimeout)
	defer cancel()
	now := metav1.Now()
	_, err := c.config.Client.CoreV1().Events(u.GetNamespace()).Create(ctx, &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{GenerateName: u.GetName() + ".", Namespace: u.GetNamespace()},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName(),
			UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(),
		},
		Type: corev1.EventTypeWarning, Reason: "TemplateBroken", Message: bounded(problem.Error(), maxEventMessage),
		Source: corev1.EventSource{Component: podspec.FieldManager}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsForbidden(err) && ctx.Err() == nil {
		c.log.WarnContext(ctx, "event about a broken template not written", "template", u.GetName(), "error", err)
	}
}

// bounded returns a text of at most so many bytes.
func bounded(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const sign = "…"
	start, _ := excerpt.Start(text, limit-len(sign))
	return start + sign
}
