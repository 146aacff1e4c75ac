// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Mesh is the API group that only a cluster with Istio has.
var Mesh = schema.GroupVersion{Group: "security.istio.io", Version: "v1"}

// AuthorizationPolicy is Istio's, with the fields that need no waypoint and that our manifests use.
// Any other field is an error to Decode.
type AuthorizationPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              AuthorizationSpec `json:"spec"`
}

// AuthorizationSpec selects pods of the namespace, and defines the action for connections that
// match any rule.
type AuthorizationSpec struct {
	Selector *AuthorizationSelector `json:"selector"`
	Action   string                 `json:"action"`
	Rules    []AuthorizationRule    `json:"rules"`
}

// AuthorizationSelector selects pods by all of these labels.
type AuthorizationSelector struct {
	MatchLabels map[string]string `json:"matchLabels"`
}

// AuthorizationRule matches a connection from any of the sources to any of the ports.
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

// AuthorizationSource is a caller: all its fields must match.
type AuthorizationSource struct {
	Principals    []string `json:"principals"`
	NotPrincipals []string `json:"notPrincipals"`
	Namespaces    []string `json:"namespaces"`
}

// DeepCopyObject copies the object, but not its fields: tests only read it.
func (p *AuthorizationPolicy) DeepCopyObject() runtime.Object {
	c := *p
	return &c
}

// knownKinds returns the kinds that Decode supports: the kinds of Kubernetes, and the kinds of Istio above.
func knownKinds() *runtime.Scheme {
	all := runtime.NewScheme()
	all.AddKnownTypes(Mesh, &AuthorizationPolicy{})
	if err := scheme.AddToScheme(all); err != nil {
		panic(err) // its types are in conflict with each other
	}
	return all
}
