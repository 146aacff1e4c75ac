// SPDX-License-Identifier: Apache-2.0

// Package freeport chooses free ports for programs under test that cannot listen on port 0. It also returns
// addresses where no server listens.
package freeport

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// first and last limit the range of ports to choose from. Operating systems choose ports for clients and for port 0
// from a higher range. If we used that range, another process could get a port before the program under test listens
// on it.
const first, last = 12000, 20000

// Choose returns a port on which no server of this machine listens. Until the end of the test, Choose returns the port
// to no other test on this machine.
func Choose(t testing.TB) string {
	t.Helper()
	for range last - first {
		port := strconv.Itoa(first + rand.N(last-first))
		var lc net.ListenConfig
		// The open UDP port reserves the number in all processes. Programs can still listen on the TCP port.
		reservation, err := lc.ListenPacket(t.Context(), "udp", ":"+port)
		if err != nil {
			continue
		}
		t.Cleanup(func() { _ = reservation.Close() })
		if l, err := lc.Listen(t.Context(), "tcp", ":"+port); err == nil {
			_ = l.Close()
			return port
		}
	}
	t.Fatalf("there is no free port from %d to %d", first, last)
	return ""
}

// Address returns an address of this machine on which no server listens.
func Address(t testing.TB) string {
	t.Helper()
	return "127.0.0.1:" + Choose(t)
}
