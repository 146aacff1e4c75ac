// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNetworkFunctionsReadCertificates has the files with all authorities to which distributions link the paths where
// programs look for them.
func TestNetworkFunctionsReadCertificates(t *testing.T) {
	static := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Version: uint32(elf.EV_CURRENT),
	}
	var program bytes.Buffer
	if err := binary.Write(&program, binary.LittleEndian, static); err != nil {
		t.Fatal(err)
	}
	fn := Function{Root: t.TempDir(), Program: []string{"/fn"}, Dir: "/"}
	if err := os.WriteFile(filepath.Join(fn.Root, "fn"), program.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	for distribution, file := range map[string]string{
		"Alpine": "/etc/ssl/cert.pem",
		"Arch":   "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
		"Debian": "/etc/ssl/certs/ca-certificates.crt",
		"Fedora": "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	} {
		for _, network := range []bool{false, true} {
			fn.Network = network
			cmd, err := (&direct{}).command(fn)
			if err != nil {
				t.Fatal(err)
			}
			contains := func(path string) bool { return strings.HasPrefix(file, path) }
			if slices.ContainsFunc(cmd.Readable, contains) != network {
				t.Errorf("%s: may read %s: %v, want %v", distribution, file, !network, network)
			}
		}
	}
}
