// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Mesh is the API group of Istio's security objects. Only clusters with Istio serve it.
var Mesh = schema.GroupVersion{Group: "security.istio.io", Version: "v1"}

// AuthorizationPolicy is Istio's object of the same name, with only the fields that our manifests use. Decode rejects
// all other fields. Manifests therefore contain only fields that Istio supports without a waypoint proxy.
type AuthorizationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AuthorizationSpec `json:"spec"`
}

// AuthorizationSpec selects pods in the object's namespace. Its action applies to connections that match any rule.
type AuthorizationSpec struct {
	Selector *AuthorizationSelector `json:"selector"`
	Action   string                 `json:"action"`
	Rules    []AuthorizationRule    `json:"rules"`
}

// AuthorizationSelector selects pods with all of the given labels.
type AuthorizationSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// AuthorizationRule matches connections from any of the sources to any of the ports.
type AuthorizationRule struct {
	From []struct {
		Source AuthorizationSource `json:"source"`
	} `json:"from"`
	To []struct {
		Operation struct {
			Ports []string `json:"ports"`
		} `json:"operation"`
	} `json:"to"`
}

// AuthorizationSource matches callers. A caller must match all fields that are set.
type AuthorizationSource struct {
	Principals    []string `json:"principals"`
	NotPrincipals []string `json:"notPrincipals"`
	Namespaces    []string `json:"namespaces"`
}

// DeepCopyObject returns a shallow copy, which is sufficient because tests only read the object.
func (p *AuthorizationPolicy) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// knownKinds returns a scheme with the kinds of Kubernetes and AuthorizationPolicy.
func knownKinds() *runtime.Scheme {
	all := runtime.NewScheme()
	all.AddKnownTypes(Mesh, &AuthorizationPolicy{})
	if err := scheme.AddToScheme(all); err != nil {
		panic(err) // conflicting types
	}
	return all
}
