package pool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/krm-function-runner/function-runner/libs/fault"
)

// maxStarved is how many pods in a row may run out of memory under an evaluation before
// its caller is told: the first time somebody else's may have taken it.
const maxStarved = 2

// refuseStarved refuses those whose pods all ran out of memory. A further pod most likely
// would too, and take along what others run on it.
func (m *Machine) refuseStarved(p *pool) {
	if len(m.starved) == 0 {
		return
	}
	for _, l := range slices.Clone(p.queue) {
		if len(l.avoid) < maxStarved || slices.ContainsFunc(l.avoid, func(pod string) bool { return m.starved[pod].IsZero() }) {
			continue
		}
		m.reject(l, fault.Precondition, fmt.Sprintf(
			"out of memory: the kernel ended pods %s while they ran this evaluation: give the function a larger memory limit, or make the package smaller",
			strings.Join(l.avoid, " and ")), 0)
	}
}
