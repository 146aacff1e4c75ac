// SPDX-License-Identifier: Apache-2.0

package fleet_test

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/krm-function-runner/function-runner/libs/retry"
)

// watcher is a client's watch.
type watcher struct {
	link     *Link
	resource string
	selector labels.Selector
	body     *io.PipeWriter

	mu      sync.Mutex
	waiting []watchLine
	wake    chan struct{} // capacity 1
}

// watchLine is a line in the response of a watch, with the time when it reaches the client.
type watchLine struct {
	at   time.Time
	line []byte
}

// startWatch starts a watch. It first sends all objects if the request is a watch list.
func (s *Server) startWatch(ctx context.Context, link *Link, resource string, selector labels.Selector,
	initial bool,
) io.ReadCloser {
	reader, writer := io.Pipe()
	w := &watcher{link: link, resource: resource, selector: selector, body: writer, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	if initial {
		w.sendList(s.matchingObjects(resource, selector))
	}
	s.watchers[w] = struct{}{}
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer func() {
			s.mu.Lock()
			delete(s.watchers, w)
			s.mu.Unlock()
			_ = writer.CloseWithError(io.EOF)
		}()
		w.run(ctx)
	}()
	return body{reader, cancel}
}

// body is the response body of a watch. Closing it stops the watch.
type body struct {
	*io.PipeReader
	cancel context.CancelFunc
}

func (b body) Close() error {
	b.cancel()
	return b.PipeReader.Close()
}

// sendList queues the existing objects, and a bookmark after them.
func (w *watcher) sendList(objects []Object) {
	for _, o := range objects {
		w.sendEvent(watch.Added, o)
	}
	end := kinds[w.resource]()
	end.SetResourceVersion("1")
	end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	w.sendEvent(watch.Bookmark, end)
}

// sendEvent queues an event. It reaches the client after the link's lag.
func (w *watcher) sendEvent(event watch.EventType, object Object) {
	setKind(object)
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err) // objects of Kubernetes are valid JSON
	}
	line, err := json.Marshal(metav1.WatchEvent{Type: string(event), Object: runtime.RawExtension{Raw: raw}})
	if err != nil {
		panic(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = append(w.waiting, watchLine{time.Now().Add(w.link.lag()), append(line, '\n')})
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run writes events until ctx is done or the connection is closed. While the link is cut, events wait.
func (w *watcher) run(ctx context.Context) {
	for {
		next, ok := w.sendFirst()
		if !ok {
			select {
			case <-w.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		if !retry.Sleep(ctx, time.Until(next.at)) || !w.link.passRequest(ctx) {
			return
		}
		if _, err := w.body.Write(next.line); err != nil {
			return
		}
	}
}

func (w *watcher) sendFirst() (watchLine, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.waiting) == 0 {
		return watchLine{}, false
	}
	next := w.waiting[0]
	w.waiting = w.waiting[1:]
	return next, true
}
