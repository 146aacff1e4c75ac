// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/libs/fault"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// Run calls changed with each new template until ctx ends, the first one included; it is
// in force when changed returns. A broken or deleted ConfigMap changes nothing but is logged.
// Porch's published Role allows to list it but not to watch it: changes are then seen within
// about half a minute.
func (t *Templates) Run(ctx context.Context, changed func(podspec.Template)) error {
	if t.config.Name == "" {
		<-ctx.Done()
		return nil
	}
	only := func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", t.config.Name).String()
	}
	from := t.config.Client.CoreV1().ConfigMaps(t.config.Namespace)
	informer, err := newInformer(t.config.Client, &corev1.ConfigMap{}, from, only, t.outage)
	if err != nil {
		return err
	}
	handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
		UpdateFunc: func(_, object any) { t.changed(ctx, object.(*corev1.ConfigMap), changed) },
		DeleteFunc: func(any) { t.gone(ctx) },
	})
	if err != nil {
		return fmt.Errorf("watch the pod template: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if cache.WaitFor(ctx, "", handled.HasSyncedChecker()) && len(informer.GetStore().ListKeys()) == 0 {
			t.gone(ctx)
		}
	}()
	runInformer(ctx, informer)
	<-ended
	return nil
}

// gone records that there is no ConfigMap.
func (t *Templates) gone(ctx context.Context) {
	t.metrics.templateFailed(ctx)
	t.blame(fault.New(fault.Precondition, "there is no pod template: the ConfigMap %s/%s has to be created", t.config.Namespace, t.config.Name))
	if t.current.Load() != nil {
		t.log.WarnContext(ctx, "pod template deleted; its last good version stays in force",
			"config_map", t.config.Name)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until there is a pod template", "error", t.obstacle())
}

// changed takes a version of the ConfigMap.
func (t *Templates) changed(ctx context.Context, from *corev1.ConfigMap, changed func(podspec.Template)) {
	if from.ResourceVersion == t.version {
		return
	}
	t.version = from.ResourceVersion
	template, warnings, err := podspec.Parse(from.ResourceVersion, from.Data, t.config.Defaults)
	if err != nil {
		t.metrics.templateFailed(ctx)
		t.blame(fault.New(fault.Precondition, "pod template in the ConfigMap %s/%s: %w", from.Namespace, from.Name, err))
		t.unusable(ctx, t.obstacle())
		return
	}
	for _, w := range warnings {
		t.log.WarnContext(ctx, "pod template", "config_map", from.Name, "warning", w)
	}
	t.put(template)
	changed(template)
	// Logged last: the template is in force when this line appears.
	t.log.InfoContext(ctx, "pod template in force", "config_map", from.Name, "version", template.Version())
}

// unusable logs the consequence of an unusable ConfigMap.
func (t *Templates) unusable(ctx context.Context, cause error) {
	if t.current.Load() != nil {
		t.log.ErrorContext(ctx, "pod template not changed: the last good one stays in force", "error", cause)
		return
	}
	t.log.ErrorContext(ctx, "no function pods are created until the pod template is repaired", "error", cause)
}
