// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package porch_test

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstream is a comparison and no test: Porch's own function runner may fail.
var upstream = flag.Bool("porch.upstream", false, "print how long users of Porch's own function runner wait, too")

// TestPorch works with packages as users of Porch do: with its published Deployment and our
// function-runner's image in place of its own, with our overlay over that, and with our services, which
// decide who may call and what may run.
func TestPorch(t *testing.T) {
	install(t)
	if *upstream {
		inANewPod(t, "upstream", func(d *draft) bool {
			out, err := d.push(t)
			if err != nil {
				t.Logf("upstream's function runner failed, which it does at times: %v\n%s", err, out)
			}
			return err == nil
		})
	}
	for _, mode := range []struct {
		name string
		use  func(t *testing.T)
	}{{"image", useImage}, {"overlay", useOverlay}, {"microservices", useMicroservices}} {
		t.Run(mode.name, func(t *testing.T) {
			mode.use(t)
			inANewPod(t, mode.name, func(d *draft) bool { d.render(t); return true })
			t.Run("one package", func(t *testing.T) { publishesAPackage(t, mode.name) })
			t.Run("many packages", func(t *testing.T) { rendersManyPackages(t, mode.name) })
			if mode.name == "microservices" {
				t.Run("decisions", decides)
			}
		})
	}
}

// inANewPod prints how long users wait for a package whose function has no pod, in a new repository,
// unless render reports that it failed. Porch has connected to the function runner before, for a
// package with another function.
func inANewPod(t *testing.T, repository string, render func(*draft) (rendered bool)) {
	register(t, repository)
	kubectl(t, "-n", functions, "delete", "pods", "--all")
	d := newDraft(t, repository, "first")
	d.mutators = []function{setNamespace(inPod(t, "set-namespace:v0.4.5"))}
	if !render(d) {
		return
	}
	d.mutators = []function{applySetters(inPod(t, "apply-setters:v0.2.2"))}
	start := time.Now()
	if render(d) {
		t.Logf("%s: rendered with a new pod within %s, as users see it", repository, since(start))
	}
}

// publishesAPackage creates a package, has it rendered and refused, mends it, and publishes it.
func publishesAPackage(t *testing.T, repository string) {
	d := newDraft(t, repository, "shop")
	d.mutators = []function{setNamespace(catalog + "set-namespace:v0.4.5")}
	start := time.Now()
	d.render(t)
	t.Logf("rendered with a binary within %s, as users see it", since(start))

	d.mutators = append(d.mutators, applySetters(inPod(t, "apply-setters:v0.2.2")))
	start = time.Now()
	d.render(t)
	t.Logf("rendered with a binary and a pod within %s, as users see it", since(start))

	for _, image := range []string{catalog + "starlark:v0.5.5", inPod(t, "starlark:v0.5.5")} {
		d.validators = []function{checkPolicy(image)}
		if out, err := d.push(t); err == nil || !strings.Contains(out, violation) || !strings.Contains(out, image) {
			t.Errorf("with a package that %s refuses, Porch answers (%v)\n%s\nwant %q", image, err, out, violation)
		}
	}
	if kptfile := stored(t, d.revision())["Kptfile"]; strings.Contains(kptfile, "validators") {
		t.Errorf("a refused package is stored:\n%s", kptfile)
	}
	d.limited = true
	d.render(t)
	d.publish(t)
}

// publish proposes and approves the package, and checks what the Git server has.
func (d *draft) publish(t *testing.T) {
	for _, step := range []struct{ action, becomes string }{{"propose", "Proposed"}, {"approve", "Published"}} {
		porchctl(t, step.action, d.revision())
		if got := lifecycle(t, d.revision()); got != step.becomes {
			t.Fatalf("after %s the package is %s, want %s", step.action, got, step.becomes)
		}
	}
	if err := rendered(published(t, d.repository, d.name+"/v1", d.name+"/cart.yaml")); err != nil {
		t.Error(err)
	}
}

// rendersManyPackages creates packages at the same time, each with a function that has a pod
// already. They are in different repositories: Porch often fails to change one several times at once.
func rendersManyPackages(t *testing.T, mode string) {
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprintf("%s-%d", mode, i))
	}
	register(t, names...)
	start := time.Now()
	var created sync.WaitGroup
	for _, repository := range names {
		created.Go(func() {
			d := newDraft(t, repository, "shop")
			d.mutators = []function{
				setNamespace(catalog + "set-namespace:v0.4.5"), applySetters(inPod(t, "apply-setters:v0.2.2")),
			}
			d.render(t)
			if err := rendered(stored(t, d.revision())["cart.yaml"]); err != nil {
				t.Errorf("%s: %v", d.revision(), err)
			}
		})
	}
	created.Wait()
	t.Logf("created and rendered %d packages within %s, as users see it", len(names), since(start))
}
