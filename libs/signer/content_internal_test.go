// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"testing"
)

// TestAContentIsHashedOnce compares one content with the signatures of many keys.
func TestAContentIsHashedOnce(t *testing.T) {
	content := NewContent(make([]byte, 64<<10))
	first := content.hash(crypto.SHA256)
	for range 10 {
		key := Key{public: &ecdsa.PublicKey{Curve: elliptic.P256()}}
		if key.Verify(content, []byte("signature")) {
			t.Error("a signature that is none is verified")
		}
	}
	if again := content.hash(crypto.SHA256); &again[0] != &first[0] {
		t.Error("the content was hashed again")
	}
}
