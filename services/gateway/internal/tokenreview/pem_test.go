// SPDX-License-Identifier: Apache-2.0

package tokenreview_test

import (
	"encoding/pem"
	"net/http/httptest"
)

// pemOf returns the authority of a server.
func pemOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}
