// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// Link is the simulated connection of a client to the server. Its methods are safe for concurrent use.
type Link struct {
	server *Server
	name   string

	mu        sync.Mutex
	healed    chan struct{} // closes when the link works again; it is nil while the link works
	watchLag  time.Duration
	latency   time.Duration
	forbidden map[string]bool
	refused   map[string]error // keyed by verb and resource
}

// Client returns a client with a name, and the link over which the client reaches the server.
func (s *Server) Client(name string) (kubernetes.Interface, *Link) {
	link := &Link{server: s, name: name, forbidden: make(map[string]bool), refused: make(map[string]error)}
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "http://api.invalid", Transport: link, QPS: -1, // no limit in client-go
		ContentConfig: rest.ContentConfig{ContentType: "application/json", AcceptContentTypes: "application/json"},
	})
	if err != nil {
		panic(err) // the configuration is a constant
	}
	return client, link
}

// Cut blocks requests and watches, like a network that loses all packets.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.healed == nil {
		l.healed = make(chan struct{})
	}
}

// Heal makes a cut link work again. Blocked requests and watches continue.
func (l *Link) Heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.healed != nil {
		close(l.healed)
		l.healed = nil
	}
}

// Lag delays watches and requests.
func (l *Link) Lag(watches, requests time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchLag = watches
	l.latency = requests
}

// Forbid refuses requests for a resource, like missing rights.
func (l *Link) Forbid(resource string, forbid bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forbidden[resource] = forbid
}

// Refuse makes requests such as "update leases" fail with an error of the Kubernetes API. A nil error makes such
// requests succeed again.
func (l *Link) Refuse(request string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused[request] = err
}

func (l *Link) lag() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.watchLag
}

// passRequest waits until the link works. It returns false if ctx is done first.
func (l *Link) passRequest(ctx context.Context) bool {
	for {
		l.mu.Lock()
		healed := l.healed
		l.mu.Unlock()
		if healed == nil {
			return ctx.Err() == nil
		}
		select {
		case <-healed:
		case <-ctx.Done():
			return false
		}
	}
}

var errLost = errors.New("dial tcp 10.96.0.1:443: i/o timeout")

// RoundTrip implements [http.RoundTripper].
func (l *Link) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	content, err := readBody(r)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	latency := l.latency
	l.mu.Unlock()
	if !l.passRequest(ctx) || !retry.Sleep(ctx, latency) {
		return nil, errors.Join(errLost, ctx.Err())
	}
	request := parse(r, content)
	request.client = l.name
	if kinds[request.resource] == nil {
		return answer(nil, apierrors.NewNotFound(schema.GroupResource{Resource: request.resource}, request.name)), nil
	}
	l.server.countRequest(request.verb + " " + request.resource)
	if err := l.refusalOf(request); err != nil {
		return answer(nil, err), nil
	}
	if request.verb == "watch" {
		return response(http.StatusOK, l.server.startWatch(ctx, l, request.resource, request.selector, request.initial)), nil
	}
	return answer(l.server.serveRequest(request)), nil
}

// readBody reads and closes the body of a request, if there is a body.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	defer func() { _ = r.Body.Close() }()
	return io.ReadAll(r.Body)
}

// refusalOf returns the error of [Link.Forbid] or [Link.Refuse] for a request, or nil.
func (l *Link) refusalOf(r request) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.forbidden[r.resource] {
		return apierrors.NewForbidden(schema.GroupResource{Resource: r.resource}, r.name, errors.New("no Role allows it"))
	}
	return l.refused[r.verb+" "+r.resource]
}

func (s *Server) countRequest(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[what]++
}

// request is an HTTP request of a client after parsing.
type request struct {
	verb, resource, name string
	client               string
	selector             labels.Selector
	initial              bool
	content              []byte
}

// parse parses a request whose path has the suffix /namespaces/NAMESPACE/RESOURCE[/NAME].
func parse(r *http.Request, content []byte) request {
	_, path, _ := strings.Cut(r.URL.Path, "/namespaces/")
	parts := append(strings.Split(path, "/"), "", "")
	query := r.URL.Query()
	return request{
		verb: verb(r.Method, query, parts[2]), resource: parts[1], name: parts[2], selector: parseSelector(query),
		initial: query.Get("sendInitialEvents") == "true", content: content,
	}
}

func verb(method string, query url.Values, name string) string {
	switch {
	case query.Get("watch") != "":
		return "watch"
	case method == http.MethodGet && name == "":
		return "list"
	default:
		return map[string]string{
			http.MethodGet: "get", http.MethodPost: "create", http.MethodPut: "update",
			http.MethodPatch: "patch", http.MethodDelete: "delete",
		}[method]
	}
}

func parseSelector(query url.Values) labels.Selector {
	s, err := labels.Parse(query.Get("labelSelector"))
	if err != nil {
		return labels.Nothing()
	}
	return s
}

// serveRequest carries out a request, and returns the object or list for the response.
func (s *Server) serveRequest(r request) (any, error) {
	switch r.verb {
	case "create", "update":
		object := kinds[r.resource]()
		if err := json.Unmarshal(r.content, object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if r.verb == "create" {
			return s.createObject(r.resource, object)
		}
		return s.updateObject(r.resource, object)
	case "get":
		return s.getObject(r.resource, r.name)
	case "list":
		return s.listOf(r), nil
	case "patch":
		return s.patchObject(r.resource, r.name, r.content)
	case "delete":
		options := &metav1.DeleteOptions{}
		if err := json.Unmarshal(r.content, options); err != nil && len(r.content) > 0 {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return &metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusSuccess,
		}, s.deleteObject(r, options)
	}
	return nil, apierrors.NewMethodNotSupported(schema.GroupResource{Resource: r.resource}, r.verb)
}

// listOf returns the objects that a list request selects, as a list with its kind.
func (s *Server) listOf(r request) any {
	objects, version := s.listObjects(r.resource, r.selector)
	kind, group := setKind(kinds[r.resource]())
	items := make([]any, 0, len(objects))
	for _, o := range objects {
		items = append(items, o)
	}
	return map[string]any{
		"kind": kind + "List", "apiVersion": group,
		"metadata": metav1.ListMeta{ResourceVersion: version}, "items": items,
	}
}

// setKind sets and returns an object's kind and group, because clients require them in responses.
func setKind(object Object) (kind, group string) {
	group = "v1"
	switch object.(type) {
	case *corev1.Pod:
		kind = "Pod"
	case *corev1.Service:
		kind = "Service"
	case *corev1.ConfigMap:
		kind = "ConfigMap"
	case *corev1.Node:
		kind = "Node"
	case *coordinationv1.Lease:
		kind, group = "Lease", "coordination.k8s.io/v1"
	}
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(group, kind))
	return kind, group
}

func answer(object any, err error) *http.Response {
	code := http.StatusOK
	if o, ok := object.(Object); ok && err == nil {
		setKind(o)
	}
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		s := status.Status()
		s.Kind = "Status"
		s.APIVersion = "v1"
		code, object = int(s.Code), s
	}
	content, err := json.Marshal(object)
	if err != nil {
		panic(err) // objects of Kubernetes are valid JSON
	}
	resp := response(code, io.NopCloser(bytes.NewReader(content)))
	resp.ContentLength = int64(len(content))
	return resp
}

func response(code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: body,
	}
}
