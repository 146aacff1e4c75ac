// SPDX-License-Identifier: Apache-2.0

package resultcache

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/krm-function-runner/function-runner/libs/resourcelist"
	"github.com/krm-function-runner/function-runner/services/gateway/internal/evaluation"
)

// SealKeyBytes is the length of the key that gateways share.
const SealKeyBytes = 32

const (
	// namePrefix begins the name of each value, so that access to the server can be limited to these names.
	namePrefix = "function-runner:result:1:"
	// sealedBytes is about what a sealed value has besides the resource list and the log.
	sealedBytes = 512
)

// MaxSealedBytes returns the largest value that holds a response of a size.
func MaxSealedBytes(responseBytes int) int { return responseBytes + sealedBytes }

// sealer turns responses into values for a server that is not trusted, and back. Each entry has a cryptographic
// key of its own, derived from the shared key and the entry's: a value opens as what it was sealed for and nothing
// else, so that the server can neither read, nor change, nor swap values. It sees sizes, and when which name is used.
type sealer struct{ names, values []byte }

func newSealer(key []byte) (sealer, error) {
	if len(key) != SealKeyBytes {
		return sealer{}, fmt.Errorf("the key of the result cache has %d bytes, want %d: "+
			"create one with head -c 32 /dev/urandom", len(key), SealKeyBytes)
	}
	return sealer{names: derive(key, "names"), values: derive(key, "values")}, nil
}

// derive returns a key for a purpose.
func derive(key []byte, purpose string) []byte {
	// The only error is a length of more than 255 hashes.
	derived, _ := hkdf.Expand(sha256.New, key, purpose, SealKeyBytes)
	return derived
}

// name returns the name of an entry at the server.
func (s sealer) name(key Key) string {
	mac := hmac.New(sha256.New, s.names)
	_, _ = mac.Write(key[:])
	return namePrefix + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// cipher returns the cipher of an entry, which chooses nonces itself.
func (s sealer) cipher(key Key) cipher.AEAD {
	block, err := aes.NewCipher(derive(s.values, string(key[:])))
	if err == nil {
		var aead cipher.AEAD
		if aead, err = cipher.NewGCMWithRandomNonce(block); err == nil {
			return aead
		}
	}
	panic(err) // the key has another length than here
}

// described is what a value has besides the log and the resource list. The list has the results too, but to find
// them there takes longer than all else.
type described struct {
	Digest  string
	Results []resourcelist.Result `json:",omitempty"`
}

// seal returns the value of an entry: digest and results, log, and resource list, sealed.
func (s sealer) seal(key Key, resp evaluation.Response) ([]byte, error) {
	aead := s.cipher(key)
	description, err := json.Marshal(described{resp.Digest, resp.Results})
	if err != nil {
		return nil, fmt.Errorf("describe a result: %w", err)
	}
	size := 2*binary.MaxVarintLen64 + len(description) + len(resp.Log) + len(resp.ResourceList)
	plain := make([]byte, 0, size+aead.Overhead())
	plain = append(binary.AppendUvarint(plain, uint64(len(description))), description...)
	plain = append(binary.AppendUvarint(plain, uint64(len(resp.Log))), resp.Log...)
	plain = append(plain, resp.ResourceList...)
	return aead.Seal(plain[:0], nil, plain, nil), nil
}

var errValue = errors.New("the value is not what a gateway with this key has written for this entry")

// open returns the response in the value of an entry. It overwrites the value, which the response refers to.
func (s sealer) open(key Key, value []byte) (evaluation.Response, error) {
	aead := s.cipher(key)
	if len(value) < aead.Overhead() {
		return evaluation.Response{}, errValue
	}
	plain, err := aead.Open(value[:0], nil, value, nil)
	if err != nil {
		return evaluation.Response{}, errValue
	}
	description, rest, ok := field(plain)
	log, list, ok2 := field(rest)
	var d described
	if !ok || !ok2 || json.Unmarshal(description, &d) != nil {
		return evaluation.Response{}, errValue
	}
	return evaluation.Response{ResourceList: list, Log: log, Results: d.Results, Digest: d.Digest}, nil
}

// field returns the first field of data, which its length precedes, and what follows.
func field(data []byte) (first, rest []byte, ok bool) {
	length, n := binary.Uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) { //nolint:gosec // n is at most the length
		return nil, nil, false
	}
	end := n + int(length) //nolint:gosec // bounded above
	return data[n:end:end], data[end:], true
}
