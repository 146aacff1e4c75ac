// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bufio"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AwaitLog waits until a pod logs a line that contains text. It ignores lines that the pod logged before since.
func (s *Suite) AwaitLog(t testing.TB, namespace, pod string, since time.Time, text string) {
	t.Helper()
	from := metav1.NewTime(since.Truncate(time.Second))
	options := &corev1.PodLogOptions{Follow: true, SinceTime: &from}
	log, err := s.Client.CoreV1().Pods(namespace).GetLogs(pod, options).Stream(Context(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the log of %s ends without %q: %v", pod, text, lines.Err())
}
