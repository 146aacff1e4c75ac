// SPDX-License-Identifier: Apache-2.0

package cacheserver

import (
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// AddressWanted describes the URLs that ParseAddress accepts.
const AddressWanted = "rediss://host:6379, with user@ before the host and /database behind it if they are needed, " +
	"without a password; redis:// for a connection that is not encrypted"

// Address is where a server is.
type Address struct {
	// Plaintext reports whether the connection is not encrypted: the scheme is redis, not rediss.
	Plaintext bool
	// Host is its name or address, and HostPort the same with the port.
	Host, HostPort string
	// User is the user to log in as; empty for the server's default user.
	User string
	// Database is the number of the database.
	Database int
}

// errAddress describes no part of the URL, which may have a secret.
var errAddress = errors.New("not an address of a cache server")

// ParseAddress reads a URL.
func ParseAddress(text string) (Address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "rediss" && u.Scheme != "redis" || u.Hostname() == "" {
		return Address{}, errAddress
	}
	_, password := u.User.Password()
	if password || u.RawQuery != "" || u.Fragment != "" {
		return Address{}, errAddress
	}
	database := 0
	if path := strings.TrimPrefix(u.Path, "/"); path != "" {
		if database, err = strconv.Atoi(path); err != nil || database < 0 {
			return Address{}, errAddress
		}
	}
	port := u.Port()
	if port == "" {
		port = "6379"
	}
	return Address{
		Plaintext: u.Scheme == "redis", Host: u.Hostname(), HostPort: net.JoinHostPort(u.Hostname(), port),
		User: u.User.Username(), Database: database,
	}, nil
}
