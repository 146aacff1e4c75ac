// SPDX-License-Identifier: Apache-2.0

//go:build tmux

package cli_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var updateScreens = flag.Bool("update", false, "write the screens to testdata/screen")

// catalog is before the names of some functions, as in real packages.
const catalog = "ghcr.io/kptdev/krm-functions-catalog/"

const screenPackages = `
-- good/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: 店舗のウェブアプリケーション-web-application-of-the-shop-in-all-regions
pipeline:
  mutators:
    - image: ghcr.io/kptdev/krm-functions-catalog/noop:v1
    - image: ghcr.io/kptdev/krm-functions-catalog/label:v1
      configMap:
        value: x
    - image: label:v1
      configMap:
        value: y
    - image: ghcr.io/kptdev/krm-functions-catalog/a-function-with-a-very-long-name-for-a-line-of-60:v1.2.3
    - image: noop:v1
  validators:
    - image: warn:v1
    - image: chatty:v1
-- good/a.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: a
-- bad/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: bad
pipeline:
  mutators:
    - image: ghcr.io/kptdev/krm-functions-catalog/label:v1
      configMap:
        value: x
  validators:
    - image: reject:v1
-- slow/Kptfile --
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: slow
pipeline:
  mutators:
    - image: noop:v1
    - image: hang:v1
`

// terminal is a tmux server of its own with one pane.
type terminal struct {
	t      *testing.T
	socket string
}

// open runs a command of the shell in a terminal, and shows its exit status behind it.
func open(t *testing.T, dir string, width, height int, env []string, command string) *terminal {
	t.Helper()
	term := &terminal{t, filepath.Join(t.TempDir(), "tmux")}
	script := "trap : INT; " + command + `; echo "status $?"; exec cat`
	args := []string{
		"-f", "/dev/null", "new-session", "-d", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height), "-c", dir,
	}
	for _, e := range env {
		args = append(args, "-e", e)
	}
	term.tmux(append(args, script)...)
	t.Cleanup(func() { term.tmux("kill-server") })
	return term
}

func (term *terminal) tmux(args ...string) string {
	term.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", term.socket}, args...)...)
	cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil {
		term.t.Fatalf("tmux %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// await returns the screen when it shows a text.
func (term *terminal) await(text string) string {
	term.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(5 * time.Minute)
	for {
		if screen := term.tmux("capture-pane", "-p", "-e"); strings.Contains(screen, text) {
			return screen
		}
		select {
		case <-tick.C:
		case <-limit:
			term.t.Fatalf("the screen never showed %q:\n%s", text, term.tmux("capture-pane", "-p"))
		}
	}
}

var (
	durations = regexp.MustCompile(`\d+(\.\d+)?(µs|ms|s)\b`)
	elapsed   = regexp.MustCompile(`(hang:v1 on 1 resource), [0-9ms]+`) // from the first second of a run
	blank     = regexp.MustCompile(`\n+$`)
)

// TestScreens holds what users see: a render of 8 functions, one that fails, and one that is
// interrupted, on narrow and wide terminals, with and without colours.
func TestScreens(t *testing.T) {
	gateway := functions
	gateway[catalog+"noop:v1"] = functions["noop:v1"]
	gateway[catalog+"label:v1"] = functions["label:v1"]
	gateway[catalog+"a-function-with-a-very-long-name-for-a-line-of-60:v1.2.3"] = functions["noop:v1"]
	address := gateway.Serve(t)
	for _, width := range []int{60, 80, 200} {
		for name, colours := range map[string]string{"colour": "NO_COLOR=", "plain": "NO_COLOR=1"} {
			t.Run(fmt.Sprintf("%d-%s", width, name), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				if err := txtar.Write(txtar.Parse([]byte(screenPackages)), dir); err != nil {
					t.Fatal(err)
				}
				//nolint:forbidigo // where this test's fnctl is
				env := []string{colours, "FNCTL_ADDRESS=" + address, "PATH=" + os.Getenv("PATH")}
				good := open(t, dir, width, 45, env, "fnctl render good").await("status 0")
				bad := open(t, dir, width, 45, env, "fnctl render bad").await("status 1")
				dumb := open(t, dir, width, 45, env, "TERM=dumb fnctl render bad").await("status 1")
				slow := open(t, dir, width, 45, env, "fnctl render slow")
				running := elapsed.ReplaceAllString(slow.await("hang:v1 on 1 resource"), "$1")
				slow.tmux("send-keys", "C-c")
				interrupted := slow.await("status 130")
				checkScreen(t, good+"\n========\n"+bad+"\n========\n"+running+"\n========\n"+interrupted)
				if strings.Contains(dumb, "\x1b[3") {
					t.Error("there are colours, although TERM is dumb")
				}
				if colours == "NO_COLOR=1" && strings.Contains(good+bad+interrupted, "\x1b[3") {
					t.Error("there are colours, although NO_COLOR is set")
				}
			})
		}
	}
}

// checkScreen compares screens with those of the test's file.
func checkScreen(t *testing.T, screens string) {
	t.Helper()
	var parts []string
	for part := range strings.SplitSeq(screens, "\n========\n") {
		parts = append(parts, blank.ReplaceAllString(durations.ReplaceAllString(part, "TIME"), "\n"))
	}
	got := strings.ReplaceAll(strings.Join(parts, "========\n"), "\x1b", "␛")
	file := filepath.Join("testdata", "screen", filepath.Base(t.Name())+".txt")
	if *updateScreens {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("screens (-want +got):\n%s", diff)
	}
}
