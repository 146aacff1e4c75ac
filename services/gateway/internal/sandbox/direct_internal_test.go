// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// executable returns a function of an image with an executable file, which has the given program headers.
func executable(t *testing.T, parts ...elf.Prog64) Function {
	t.Helper()
	header := elf.Header64{
		Ident: [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Version: uint32(elf.EV_CURRENT),
		Phoff: uint64(binary.Size(elf.Header64{})), Phentsize: uint16(binary.Size(elf.Prog64{})), Phnum: uint16(len(parts)),
	}
	var program bytes.Buffer
	err := errors.Join(binary.Write(&program, binary.LittleEndian, header),
		binary.Write(&program, binary.LittleEndian, parts))
	if err != nil {
		t.Fatal(err)
	}
	return image(t, program.String())
}

// image returns a function of an image whose program has the given content.
func image(t *testing.T, program string) Function {
	t.Helper()
	fn := Function{Root: t.TempDir(), Program: []string{"/fn"}, Dir: "/"}
	if err := os.WriteFile(filepath.Join(fn.Root, "fn"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	return fn
}

// TestDirectStartsOnlyStaticExecutables has programs that need a loader or an interpreter of their image.
func TestDirectStartsOnlyStaticExecutables(t *testing.T) {
	for name, tc := range map[string]struct {
		fn   Function
		want string
	}{
		"static": {executable(t, elf.Prog64{Type: uint32(elf.PT_LOAD)}), ""},
		"loader": {executable(t, elf.Prog64{Type: uint32(elf.PT_INTERP)}), notStatic},
		"script": {image(t, "#!/bin/sh\n"), notStatic},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&direct{}).command(tc.fn)
			if (err == nil) != (tc.want == "") || (err != nil && !strings.HasSuffix(err.Error(), "format error ("+tc.want+")")) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// TestNetworkFunctionsReadCertificates has the files with all authorities to which distributions link the paths where
// programs look for them.
func TestNetworkFunctionsReadCertificates(t *testing.T) {
	fn := executable(t)
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
