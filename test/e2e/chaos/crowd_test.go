// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package chaos_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/krm-function-runner/function-runner/libs/gen/evaluator"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/imagecopy"
	"github.com/krm-function-runner/function-runner/test/e2e/internal/suite"
)

// deadline is the time that callers allow for an evaluation. It only ends those that hang: the report has the times.
const deadline = suite.ConditionTimeout

// gateway is a replica, with the connection of its callers.
type gateway struct {
	name   string
	conn   *grpc.ClientConn
	killed atomic.Bool // before it happens
}

// call is the result of a request.
type call struct {
	image string
	begin time.Time
	took  time.Duration
	err   error
	// excused reports whether the request was in flight in a gateway that was killed.
	excused bool
	wrong   bool // the result is not that of this request
}

// crowd is the callers.
type crowd struct {
	sys    *system
	images []string
	ended  sync.WaitGroup

	mu       sync.Mutex
	gateways []*gateway
	calls    []call
}

// newCrowd gives each function its own name, so that it has its own pods.
func newCrowd(t *testing.T, sys *system) *crowd {
	t.Helper()
	c := &crowd{sys: sys}
	host := s.Registry(t, "open").Host
	for n := range functionCount {
		image := fmt.Sprintf("%s/test/sleep:chaos-%d", host, n)
		imagecopy.Push(t, host+"/test/sleep:v1", image, nil)
		c.images = append(c.images, image)
	}
	c.meet(t)
	return c
}

// meet finds the gateways that run now.
func (c *crowd) meet(t *testing.T) {
	t.Helper()
	pods, err := c.sys.running(suite.Context(t), "gateway")
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range pods {
		known := slices.ContainsFunc(c.gateways, func(g *gateway) bool { return g.name == pods[i].Name })
		if suite.Ready(&pods[i]) && !known {
			c.gateways = append(c.gateways, &gateway{name: pods[i].Name, conn: suite.Connect(t, pods[i].Status.PodIP+":9445")})
		}
	}
}

// leave has callers use other gateways than one that will be killed.
func (c *crowd) leave(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gateways = slices.DeleteFunc(c.gateways, func(g *gateway) bool {
		if g.name == name {
			g.killed.Store(true)
		}
		return g.name == name
	})
}

// settle has each function evaluated once.
func (c *crowd) settle(t *testing.T) {
	t.Helper()
	for _, image := range c.images {
		if got := c.call(t.Context(), image, 0); got.err != nil {
			t.Fatalf("evaluate %s before anything breaks: %v", image, got.err)
		}
	}
}

// start starts the callers. They end when ctx does, and finish what they began.
func (c *crowd) start(ctx context.Context) {
	for n := range callers {
		c.ended.Go(func() {
			for ctx.Err() == nil {
				c.add(c.call(context.WithoutCancel(ctx), c.images[n%len(c.images)], rand.N(300*time.Millisecond)))
				<-time.After(rand.N(200 * time.Millisecond)) // others share the processors
			}
		})
	}
}

func (c *crowd) add(got call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, got)
}

func (c *crowd) wait() { c.ended.Wait() }

// pick returns one of the gateways.
func (c *crowd) pick() *gateway {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gateways[rand.IntN(len(c.gateways))]
}

// call evaluates a function once, with an item that is in no other request.
func (c *crowd) call(ctx context.Context, image string, takes time.Duration) call {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	g, id := c.pick(), fmt.Sprintf("item-%016x", rand.Uint64())
	list := fmt.Appendf(nil, `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: %s
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata:
    name: config
  data:
    duration: %s
`, id, takes)
	got := call{image: image, begin: time.Now()}
	resp, err := evaluator.NewFunctionEvaluatorClient(g.conn).EvaluateFunction(ctx,
		&evaluator.EvaluateFunctionRequest{Image: image, ResourceList: list})
	got.took = time.Since(got.begin)
	got.err = err
	got.excused = status.Code(err) == codes.Unavailable && g.killed.Load()
	got.wrong = err == nil && strings.Count(string(resp.GetResourceList()), "name: "+id+"\n") != 1
	return got
}

// judge fails for each request that failed or had a wrong result.
func (c *crowd) judge(t *testing.T) {
	t.Helper()
	for _, got := range c.calls {
		switch {
		case got.wrong:
			t.Errorf("%s has the result of another request", got.image)
		case got.err != nil && !got.excused:
			t.Errorf("at %s, %s after %s: %v", got.begin.Format("15:04:05.0"), got.image, got.took, got.err)
		}
	}
}
