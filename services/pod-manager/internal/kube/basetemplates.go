// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/podspec"
)

// Names of the PodTemplate and ServiceTemplate objects in which Porch stores its templates for function pods.
const (
	basePodTemplate     = "base-pod-template"
	baseServiceTemplate = "base-service-template"
)

// base watches one of Porch's two template objects, the PodTemplate or the ServiceTemplate. It applies each change
// to the template of function pods.
type base struct {
	templates *Templates
	changed   func(podspec.Template)
	resource  schema.GroupVersionResource
	name      string
	// part returns a pointer to the field of baseParts that stores this object's content.
	part func(*baseParts) *map[string]any
}

// baseParts contains the contents of Porch's PodTemplate and ServiceTemplate objects. A field is nil if the object
// does not exist. The maps are never modified.
type baseParts struct{ pod, service map[string]any }

// baseTemplates returns a follower for each of Porch's two template objects. Each follower calls the function
// changed with each new template, and then logs the template as applied.
func (t *Templates) baseTemplates(changed func(podspec.Template)) []base {
	return []base{
		{t, changed, podTemplates, basePodTemplate, func(p *baseParts) *map[string]any { return &p.pod }},
		{t, changed, serviceTemplates, baseServiceTemplate, func(p *baseParts) *map[string]any { return &p.service }},
	}
}

// absent implements follower. It removes the content of an object that does not exist from the template.
func (b base) absent(ctx context.Context) { b.applyObject(ctx, nil) }

// follow implements follower.
func (b base) follow(ctx context.Context, c *PorchResources) error {
	return c.watch(ctx, b.resource, b.name, func(ctx context.Context, informer cache.SharedIndexInformer) error {
		version := "" // version of the last applied object
		take := func(object any) {
			u := object.(*unstructured.Unstructured)
			if u.GetResourceVersion() != version {
				version = u.GetResourceVersion()
				b.applyObject(ctx, u)
			}
		}
		handled, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    take,
			UpdateFunc: func(_, object any) { take(object) },
			DeleteFunc: func(any) { version = ""; b.absent(ctx) },
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", b.name, err)
		}
		if cache.WaitFor(ctx, "", handled.HasSyncedChecker()) && len(informer.GetStore().ListKeys()) == 0 {
			b.absent(ctx)
		}
		c.markSynced(b.resource)
		<-ctx.Done()
		return nil
	})
}

// applyObject updates the template of function pods with a new version of Porch's template object. u is nil if the
// object does not exist. If the new version is invalid, the current template stays in use.
func (b base) applyObject(ctx context.Context, u *unstructured.Unstructured) {
	t := b.templates
	if t.config.Name != "" {
		if u != nil {
			t.log.InfoContext(ctx, "template not used: --function-pod-template (FNR_TEMPLATE) wins over it",
				"template", b.name, "config_map", t.config.Name)
		}
		return
	}
	template, warnings, changed, err := t.useBase(func(p *baseParts) {
		*b.part(p) = nil
		if u != nil {
			*b.part(p) = u.Object
		}
	})
	if err != nil {
		t.metrics.templateFailed(ctx)
		t.log.ErrorContext(ctx, "pod template not changed, keeping the current template",
			"template", b.name, "error", err)
		return
	}
	for _, w := range warnings {
		t.log.WarnContext(ctx, "pod template", "template", b.name, "warning", w)
	}
	if !changed {
		return
	}
	b.changed(template)
	t.log.InfoContext(ctx, "pod template applied",
		"template", b.name, "deleted", u == nil, "version", template.Version())
}

// useBase calls change to modify the stored contents of Porch's template objects, and builds the current template
// from them. If the new template is invalid, it returns an error and keeps the current template. changed is true if
// the template is new.
func (t *Templates) useBase(change func(*baseParts)) (
	template podspec.Template, warnings []string, changed bool, err error,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	parts := t.base
	change(&parts)
	template, warnings, err = t.combineParts(parts)
	if err != nil {
		return template, nil, false, err
	}
	t.base = parts
	if before := t.current.Load(); before == nil {
		// As long as no launcher (image volume or init container) is chosen, only a user's pod template can be used: it
		// needs none.
		changed = parts.pod != nil
	} else {
		changed = before.Version() != template.Version()
	}
	if changed {
		t.setCurrent(template)
	}
	return template, warnings, changed, nil
}

// combineParts builds a template from Porch's template objects and the current launcher (image volume or init
// container). If the launcher was chosen automatically, the template's version is the same for both launchers. So a
// change of the launcher does not make existing pods outdated.
func (t *Templates) combineParts(parts baseParts) (podspec.Template, []string, error) {
	defaults := t.config.Defaults
	if t.launcher != "" {
		defaults.Launcher = t.launcher
	}
	template, warnings, err := podspec.ParseBase(parts.pod, parts.service, defaults)
	if err != nil || defaults.Launcher != podspec.ImageVolume || t.launcher == "" {
		return template, warnings, err
	}
	defaults.Launcher = podspec.InitContainer
	safe, _, err := podspec.ParseBase(parts.pod, parts.service, defaults)
	return template.CountAs(safe), warnings, err
}
