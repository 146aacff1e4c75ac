// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"sync"

	"github.com/krm-function-runner/function-runner/services/image-resolver/internal/dialguard"
)

// disguises give names to token servers that are given by a private address. The library
// refuses such addresses in any challenge; a registry that has one itself may well
// have its token server beside it. Which ones may be asked is decided here, see
// [guard.mayName] and [guard.permit].
type disguises struct {
	mu    sync.Mutex
	hosts map[string]string // by their names
}

// name returns the name for a host, as host or host:port, whose address is given.
func (d *disguises) name(host string, addr netip.Addr) string {
	name := fmt.Sprintf("%x.address.invalid", addr.AsSlice())
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name += host[i:]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.hosts == nil {
		d.hosts = make(map[string]string)
	}
	d.hosts[name] = host
	return name
}

// lift returns a request to what was given a name, and others as they are.
func (d *disguises) lift(req *http.Request) *http.Request {
	d.mu.Lock()
	host, ok := d.hosts[req.URL.Host]
	d.mu.Unlock()
	if !ok {
		return req
	}
	lifted := *req // its headers and what it follows are the same
	target := *req.URL
	target.Host = host
	lifted.URL, lifted.Host = &target, host
	return &lifted
}

// realm finds the address of a token server in a challenge.
var realm = regexp.MustCompile(`(?i)(\brealm=")([^"]+)"`)

// disguise has the library accept the token server that an answer names, or sends us
// to, if it may be asked.
func (g *guard) disguise(req *http.Request, resp *http.Response) {
	ctx := req.Context()
	for i, challenge := range resp.Header.Values("WWW-Authenticate") {
		resp.Header["Www-Authenticate"][i] = realm.ReplaceAllStringFunc(challenge, func(found string) string {
			parts := realm.FindStringSubmatch(found)
			return parts[1] + g.named(ctx, parts[2]) + `"`
		})
	}
	if to := resp.Header.Get("Location"); to != "" && operation(origin(req)) == opToken {
		resp.Header.Set("Location", g.named(ctx, to))
	}
}

// named returns a URL with a name in place of a private address, if it may be asked.
func (g *guard) named(ctx context.Context, target string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target
	}
	addr, err := netip.ParseAddr(u.Hostname())
	if err != nil || !g.mayName(ctx, addr) {
		return target
	}
	u.Host = g.disguises.name(u.Host, addr)
	return u.String()
}

// mayName reports whether the registry may have its token server at an address: at its own,
// on the same machine, or at a private one if it is at a private one itself.
func (g *guard) mayName(ctx context.Context, addr netip.Addr) bool {
	if g.owns(addr.String()) {
		return true
	}
	return addr.Unmap().IsPrivate() && !dialguard.IsLocal(addr.String()) && g.isPrivate(ctx)
}

// isPrivate reports whether the registry is at a private address, whatever its name leads
// to, or on this machine.
func (g *guard) isPrivate(ctx context.Context) bool {
	host := hostname(g.host)
	if addr, err := netip.ParseAddr(host); err == nil || dialguard.IsLoopback(host) {
		return dialguard.IsLoopback(host) || addr.Unmap().IsPrivate()
	}
	found, err := g.client.cfg.Lookup(ctx, "ip", host)
	for _, addr := range found {
		if !addr.Unmap().IsPrivate() && !addr.Unmap().IsLoopback() {
			return false
		}
	}
	return err == nil && len(found) > 0
}
