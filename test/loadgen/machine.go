// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
)

// Machine describes the machine on which a measurement ran.
type Machine struct {
	System     string `json:"system"`
	Processors int    `json:"processors"`
	// Processor, Memory and Kernel come from /proc. They are empty on systems other than Linux.
	Processor string `json:"processor,omitempty"`
	Memory    string `json:"memory,omitempty"`
	Kernel    string `json:"kernel,omitempty"`
	// Go is the version of Go that built loadgen.
	Go string `json:"go"`
	// Description is a summary in a single line.
	Description string `json:"description"`
}

// ThisMachine describes the machine on which this program runs.
func ThisMachine() Machine {
	read := func(name string) string {
		content, _ := os.ReadFile("/proc/" + name) // the files exist only on Linux
		return string(content)
	}
	m := describeMachine(read("cpuinfo"), read("meminfo"), read("sys/kernel/osrelease"))
	m.Description = m.String()
	return m
}

// describeMachine describes a machine from the contents of its files in /proc.
func describeMachine(cpuinfo, meminfo, osrelease string) Machine {
	m := Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Processors: runtime.NumCPU(),
		Processor: readField(cpuinfo, "model name"), Kernel: strings.TrimSpace(osrelease),
		Go: runtime.Version(),
	}
	var kib int64
	if _, err := fmt.Sscanf(readField(meminfo, "MemTotal"), "%d kB", &kib); err == nil {
		m.Memory = fmt.Sprintf("%.0f GiB", float64(kib)/(1<<20))
	}
	return m
}

// readField searches the content for the first line "name: value" with the given name, and returns the line's value.
func readField(content, name string) string {
	for line := range strings.Lines(content) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String describes the machine in a single line.
func (m Machine) String() string {
	parts := []string{fmt.Sprintf("Measured on %s with %d processors", m.System, m.Processors)}
	for _, part := range []string{m.Processor, m.Memory, m.Kernel, m.Go} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
