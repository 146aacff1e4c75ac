// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/krm-function-runner/function-runner/libs/mtls"
)

// authority is the certificate authority that issues the certificates of the measured programs.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// certificateLife is the validity period of certificates. No measurement runs longer.
const certificateLife = 24 * time.Hour

func newAuthority() (*authority, error) {
	template := certificateTemplate()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	a := &authority{cert: template}
	return a, a.sign(template, &a.cert, &a.key)
}

func certificateTemplate() *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    time.Now().Add(-time.Minute), NotAfter: time.Now().Add(certificateLife),
	}
}

// sign creates a key and a certificate that the authority signs. The authority's own certificate is self-signed.
func (a *authority) sign(template *x509.Certificate, cert **x509.Certificate, key **ecdsa.PrivateKey) error {
	created, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	signer := a.key
	if signer == nil {
		signer = created
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, created.Public(), signer)
	if err != nil {
		return err
	}
	*key = created
	*cert, err = x509.ParseCertificate(der)
	return err
}

func (a *authority) pem() []byte { return pemOf("CERTIFICATE", a.cert.Raw) }

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// write issues a certificate for a program, and writes it, its key and the authority's certificate to a new
// directory below dir. It returns this directory.
func (a *authority) write(dir, program string) (string, error) {
	template := certificateTemplate()
	template.URIs = []*url.URL{{Scheme: "spiffe", Host: "function-runner", Path: "/" + program}}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	var cert *x509.Certificate
	var key *ecdsa.PrivateKey
	if err := a.sign(template, &cert, &key); err != nil {
		return "", err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(dir, program)
	err = os.Mkdir(dir, 0o700)
	for name, content := range map[string][]byte{
		mtls.CertificateFile: pemOf("CERTIFICATE", cert.Raw), mtls.KeyFile: pemOf("PRIVATE KEY", private),
		mtls.AuthoritiesFile: a.pem(),
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	return dir, err
}
