package manager

import (
	podmanagerv1 "github.com/krm-function-runner/function-runner/libs/gen/functionrunner/podmanager/v1"
	"github.com/krm-function-runner/function-runner/services/pod-manager/internal/pool"
)

// lookUp counts by how many more leases, or fewer, an image is being looked up. Such an
// image has a pool without digest, so that people see what their evaluation waits for.
func (l *loop) lookUp(image string, more int32) {
	l.lookups[image] += more
	if l.lookups[image] == 0 {
		delete(l.lookups, image)
	}
	l.changed(pool.Function{Reference: image})
}

// changed tells the watchers about a pool.
func (l *loop) changed(f pool.Function) {
	for w := range l.watchers {
		w.changed(f)
	}
}

// functions returns all that have a pool, in no order.
func (l *loop) functions() []pool.Function {
	functions := l.machine.Functions()
	for image := range l.lookups {
		functions = append(functions, pool.Function{Reference: image})
	}
	return functions
}

// snapshot returns a pool as it is now; nil if there is none.
func (l *loop) snapshot(f pool.Function) *podmanagerv1.Pool {
	if n := l.lookups[f.Reference]; n > 0 && f.Digest == "" {
		return &podmanagerv1.Pool{Key: &podmanagerv1.PoolKey{Reference: f.Reference}, Waiting: n}
	}
	return l.machine.Snapshot(f)
}
