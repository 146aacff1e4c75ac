// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// Object is a Kubernetes object.
type Object interface {
	metav1.Object
	runtime.Object
}

// kinds maps the supported resources to constructors of empty objects.
var kinds = map[string]func() Object{
	"pods":       func() Object { return &corev1.Pod{} },
	"services":   func() Object { return &corev1.Service{} },
	"leases":     func() Object { return &coordinationv1.Lease{} },
	"configmaps": func() Object { return &corev1.ConfigMap{} },
}

// Server is a Kubernetes API in memory, with the Pods, Services, Leases and ConfigMaps of a namespace. It enforces
// resourceVersions and UIDs like a real API server. Each client uses its own link. A link can lag, be cut, or lack
// rights. Use [newServer].
type Server struct {
	mu       sync.Mutex
	version  int
	objects  map[string]map[string]Object // keyed by resource and name
	watchers map[*watcher]struct{}
	requests map[string]int // keyed by verb and resource
	quota    int            // maximum number of pods, 0 for no limit
	// observe is called after each change, in order.
	observe func(watch.EventType, Object)
	// deleted is called for each deletion of a pod, with the name of the client.
	deleted func(client string, pod *corev1.Pod)
}

// OnDelete calls deleted at the start of each deletion of a pod, with the name of the client. deleted must not call
// the server.
func (s *Server) OnDelete(deleted func(client string, pod *corev1.Pod)) { s.deleted = deleted }

// newServer returns a server without objects. It calls observe with each change of an object, unless observe is nil.
// observe must not call the server.
func newServer(observe func(watch.EventType, Object)) *Server {
	s := &Server{
		objects: make(map[string]map[string]Object), watchers: make(map[*watcher]struct{}),
		requests: make(map[string]int), observe: observe,
	}
	for resource := range kinds {
		s.objects[resource] = make(map[string]Object)
	}
	return s
}

// SetQuota sets the maximum number of pods, like a ResourceQuota. The server refuses further pods. Zero means no
// quota.
func (s *Server) SetQuota(pods int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quota = pods
}

// Requests returns the number of requests of a kind, such as "update leases", that the server received.
func (s *Server) Requests(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[what]
}

// Pods returns copies of the pods, sorted by name.
func (s *Server) Pods() []*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.objects["pods"]
	pods := make([]*corev1.Pod, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		pods = append(pods, all[name].DeepCopyObject().(*corev1.Pod))
	}
	return pods
}

// Create creates an object on behalf of another client.
func (s *Server) Create(resource string, object Object) error {
	_, err := s.createObject(resource, object.DeepCopyObject().(Object))
	return err
}

// Change changes an object like a kubelet or another client. It returns false if there is no such object.
func (s *Server) Change(resource, name string, change func(Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.objects[resource][name]
	if !ok {
		return false
	}
	next := found.DeepCopyObject().(Object)
	change(next)
	s.storeObject(resource, watch.Modified, next)
	return true
}

// Remove removes an object at once, if its UID matches. An empty UID matches any object.
func (s *Server) Remove(resource, name string, uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.objects[resource][name]; ok && (uid == "" || found.GetUID() == uid) {
		s.removeObject(resource, found)
	}
}

// storeObject stores a new version of an object. The caller must hold the lock.
func (s *Server) storeObject(resource string, event watch.EventType, object Object) {
	s.version++
	object.SetResourceVersion(strconv.Itoa(s.version))
	s.objects[resource][object.GetName()] = object
	s.announceChange(resource, event, object)
}

func (s *Server) removeObject(resource string, object Object) {
	delete(s.objects[resource], object.GetName())
	last := object.DeepCopyObject().(Object)
	s.version++
	last.SetResourceVersion(strconv.Itoa(s.version))
	s.announceChange(resource, watch.Deleted, last)
}

func (s *Server) announceChange(resource string, event watch.EventType, object Object) {
	if s.observe != nil {
		s.observe(event, object.DeepCopyObject().(Object))
	}
	for w := range s.watchers {
		if w.resource == resource && w.selector.Matches(labels.Set(object.GetLabels())) {
			w.sendEvent(event, object)
		}
	}
}

func (s *Server) createObject(resource string, object Object) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := schema.GroupResource{Resource: resource}
	if _, taken := s.objects[resource][object.GetName()]; taken {
		return nil, apierrors.NewAlreadyExists(group, object.GetName())
	}
	if resource == "pods" && s.quota > 0 && len(s.objects["pods"]) >= s.quota {
		return nil, apierrors.NewForbidden(group, object.GetName(), errors.New("exceeded quota: function-pods"))
	}
	object.SetUID(types.UID("uid-" + strconv.Itoa(s.version+1)))
	object.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	if service, ok := object.(*corev1.Service); ok {
		service.Spec.ClusterIP = "10.96.0.1"
	}
	s.storeObject(resource, watch.Added, object)
	return object.DeepCopyObject().(Object), nil
}

// getObject returns a copy of an object.
func (s *Server) getObject(resource, name string) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.objects[resource][name]; ok {
		return found.DeepCopyObject().(Object), nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name)
}

// updateObject replaces an object if the new object contains its current resourceVersion.
func (s *Server) updateObject(resource string, object Object) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := schema.GroupResource{Resource: resource}
	found, ok := s.objects[resource][object.GetName()]
	switch {
	case !ok:
		return nil, apierrors.NewNotFound(group, object.GetName())
	case object.GetResourceVersion() != "" && object.GetResourceVersion() != found.GetResourceVersion():
		return nil, apierrors.NewConflict(group, object.GetName(), fmt.Errorf("it has version %s",
			found.GetResourceVersion()))
	case object.GetUID() != "" && object.GetUID() != found.GetUID():
		return nil, apierrors.NewConflict(group, object.GetName(), fmt.Errorf("it has UID %s", found.GetUID()))
	}
	s.storeObject(resource, watch.Modified, object)
	return object.DeepCopyObject().(Object), nil
}

// patchObject merges a patch of metadata into an object. A UID in the patch must match.
func (s *Server) patchObject(resource, name string, body []byte) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	group := schema.GroupResource{Resource: resource}
	found, ok := s.objects[resource][name]
	if !ok {
		return nil, apierrors.NewNotFound(group, name)
	}
	var change struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(body, &change); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if uid := change.Metadata.UID; uid != "" && uid != found.GetUID() {
		return nil, apierrors.NewConflict(group, name, fmt.Errorf("precondition failed: UID %s", uid))
	}
	next := found.DeepCopyObject().(Object)
	annotations := maps.Clone(next.GetAnnotations())
	if annotations == nil {
		annotations = make(map[string]string)
	}
	maps.Copy(annotations, change.Metadata.Annotations)
	next.SetAnnotations(annotations)
	s.storeObject(resource, watch.Modified, next)
	return next.DeepCopyObject().(Object), nil
}

// deleteObject deletes an object that meets the preconditions. A pod is only marked as deleted, until [Server.Remove]
// removes it.
func (s *Server) deleteObject(r request, options *metav1.DeleteOptions) error {
	resource, name := r.resource, r.name
	s.mu.Lock()
	defer s.mu.Unlock()
	group := schema.GroupResource{Resource: resource}
	found, ok := s.objects[resource][name]
	if !ok {
		return apierrors.NewNotFound(group, name)
	}
	if p := options.Preconditions; p != nil && ((p.UID != nil && *p.UID != found.GetUID()) ||
		(p.ResourceVersion != nil && *p.ResourceVersion != found.GetResourceVersion())) {
		return apierrors.NewConflict(group, name, fmt.Errorf("the preconditions do not hold for version %s",
			found.GetResourceVersion()))
	}
	if _, isPod := found.(*corev1.Pod); !isPod {
		s.removeObject(resource, found)
		return nil
	}
	if found.GetDeletionTimestamp() == nil {
		s.markDeleted(r, found, options.GracePeriodSeconds)
	}
	return nil
}

// markDeleted terminates a pod. If grace is nil it uses the pod's own grace period.
func (s *Server) markDeleted(r request, found Object, grace *int64) {
	if s.deleted != nil {
		s.deleted(r.client, found.DeepCopyObject().(*corev1.Pod))
	}
	next := found.DeepCopyObject().(Object)
	now := metav1.Now()
	next.SetDeletionTimestamp(&now)
	if grace == nil {
		grace = found.(*corev1.Pod).Spec.TerminationGracePeriodSeconds
	}
	next.SetDeletionGracePeriodSeconds(grace)
	s.storeObject(r.resource, watch.Modified, next)
}

// listObjects returns copies of objects, sorted by name, and the version of the list.
func (s *Server) listObjects(resource string, selector labels.Selector) ([]Object, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.matchingObjects(resource, selector), strconv.Itoa(s.version)
}

func (s *Server) matchingObjects(resource string, selector labels.Selector) []Object {
	var found []Object
	for _, name := range slices.Sorted(maps.Keys(s.objects[resource])) {
		if o := s.objects[resource][name]; selector.Matches(labels.Set(o.GetLabels())) {
			found = append(found, o.DeepCopyObject().(Object))
		}
	}
	return found
}
