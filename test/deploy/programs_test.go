// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/krm-function-runner/function-runner/libs/testing/gobuild"
)

// planted is a variable with an invalid value. A program names all its settings with invalid values
// at once, without starting: if it names this one alone, all others are valid.
const planted = "FNR_TELEMETRY_LOG_FORMAT"

// TestProgramsUnderstandTheirSettings starts each program with the arguments and
// variables of its manifests.
func TestProgramsUnderstandTheirSettings(t *testing.T) {
	programs := map[string]string{}
	for _, name := range []string{"gateway", "image-resolver", "pod-manager", "function-runner"} {
		programs[name] = gobuild.Program(t, filepath.Join(root, "services", name), ".")
	}
	started := map[string]bool{} // most components change the settings of one program
	eachDeployable(t, func(t *testing.T, objects []runtime.Object) {
		for _, d := range of[*appsv1.Deployment](objects) {
			c := d.Spec.Template.Spec.Containers[0]
			settings := fmt.Sprint(d.Name, c.Args, c.Env, c.VolumeMounts)
			if program := programs[d.Name]; program != "" && !started[settings] {
				started[settings] = true
				understands(t, program, d.Spec.Template.Spec)
			}
		}
	})
}

// understands starts the program as the pod would.
func understands(t *testing.T, program string, pod corev1.PodSpec) {
	t.Helper()
	c := pod.Containers[0]
	args := slices.Clone(c.Args)
	var env []string
	for _, v := range c.Env {
		if v.Name != planted {
			env = append(env, v.Name+"="+v.Value)
		}
	}
	var paths []string
	for _, m := range c.VolumeMounts {
		paths = append(paths, "="+m.MountPath, "="+mounted(t))
	}
	moved := strings.NewReplacer(paths...)
	for _, values := range [][]string{args, env} {
		for i, v := range values {
			values[i] = moved.Replace(v)
		}
	}
	out := wrong(t, program, args, append(env, planted+"=neither"))
	if problems := strings.Split(strings.TrimSpace(out), "\n")[1:]; len(problems) != 1 ||
		!strings.Contains(problems[0], planted) {
		t.Errorf("%s rejects the settings of its manifest:\n%s", c.Name, out)
	}
}

// mounted is a directory that can replace any volume.
func mounted(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, corev1.DockerConfigJsonKey), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// wrong starts the program with settings of which one is invalid, and returns its output.
func wrong(t *testing.T, program string, args, env []string) string {
	t.Helper()
	const wrongConfig = 2
	command := exec.CommandContext(t.Context(), program, args...)
	command.Env = env
	out, err := command.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != wrongConfig {
		t.Fatalf("%s did not reject its settings: %v\n%s", filepath.Base(program), err, fmt.Sprintf("%.2000s", out))
	}
	return string(out)
}
