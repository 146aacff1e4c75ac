// SPDX-License-Identifier: Apache-2.0

package sandbox

import "strconv"

// Mount points for the in-memory file system of an OCI runtime, see [oci.scratch]. crun fails if it finds control
// groups that it cannot use. Therefore its mount point is cgroupDirectory, and the mount hides the control groups.
const (
	kernelDirectory = "/sys/kernel"
	cgroupDirectory = "/sys/fs/cgroup"
)

func newBubblewrap(l *Launcher, path string) (starter, error) {
	filter, err := l.writeFilter()
	if err != nil {
		return nil, err
	}
	return &bubblewrap{cfg: l.cfg, path: path, filter: filter, processes: l.processLimit()}, nil
}

func newCrun(l *Launcher, path string) (starter, error) {
	return newOCI(l, path, oci{
		scratch: cgroupDirectory, arguments: []string{"--cgroup-manager=disabled", "--log-format=json"},
		messages: []string{`{"msg":"*","level":"error","time":"`, "crun: "},
	})
}

func newRunc(l *Launcher, path string) (starter, error) {
	return newOCI(l, path, oci{
		scratch: kernelDirectory, arguments: []string{"--rootless=true"}, before: readOnlyGroups,
		messages: []string{
			`time="*" level=error msg="runc run failed: `,
			`time="*" level=warning msg="unable to get oom kill count" `, // printed first if there are no control groups
		},
	})
}

func newRunsc(l *Launcher, path string) (starter, error) {
	return newOCI(l, path, oci{
		scratch: kernelDirectory, arguments: []string{"--rootless", "--ignore-cgroups", "--oci-seccomp"},
		offline: []string{"--network=none"}, online: []string{"--network=host"},
		messages: []string{"running container: ", "reading spec: ", "starting container: ", "creating container: "},
	})
}

// newOCI returns a starter for an OCI runtime. It adds the settings that all runtimes share to the settings in o.
func newOCI(l *Launcher, path string, o oci) (starter, error) {
	tools, err := lookUpAll("unshare", "sh", "mount")
	if err != nil {
		return nil, err
	}
	o.cfg = l.cfg
	o.path = path
	o.unshare, o.shell, o.mount = tools[0], tools[1], tools[2]
	o.seccomp, err = ociSeccomp()
	return &o, err
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }
