// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// runForeign tries to evade a filter of system calls: it runs a program that calls exit(0) with the system call
// number of 32-bit programs.
func runForeign(string) error {
	if runtime.GOARCH != "amd64" {
		return syscall.ENOSYS // only amd64 has these numbers
	}
	path := filepath.Join(os.TempDir(), "foreign")
	exitOnError(os.WriteFile(path, foreignProgram(), 0o700))
	child, err := os.StartProcess(path, []string{path}, &os.ProcAttr{})
	exitOnError(err)
	state, err := child.Wait()
	exitOnError(err)
	if !state.Success() {
		return errors.New(state.String())
	}
	return nil
}

// foreignProgram returns a 64-bit executable that calls exit(0) as 32-bit programs do: "mov eax, 1; xor ebx, ebx;
// int 0x80".
func foreignProgram() []byte {
	const base, headers = 0x400000, 64 + 56
	code := []byte{0xb8, 1, 0, 0, 0, 0x31, 0xdb, 0xcd, 0x80}
	le := binary.LittleEndian
	elf := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	elf = le.AppendUint16(elf, 2)  // an executable
	elf = le.AppendUint16(elf, 62) // machine: amd64
	elf = le.AppendUint32(elf, 1)
	elf = le.AppendUint64(elf, base+headers) // entry point
	elf = le.AppendUint64(elf, 64)           // offset of the program header
	elf = le.AppendUint64(elf, 0)
	elf = le.AppendUint32(elf, 0)
	for _, v := range []uint16{64, 56, 1, 0, 0, 0} { // sizes and counts of headers
		elf = le.AppendUint16(elf, v)
	}
	elf = le.AppendUint32(elf, 1) // type: loadable
	elf = le.AppendUint32(elf, 5) // flags: read and execute
	size := uint64(headers + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		elf = le.AppendUint64(elf, v)
	}
	return append(elf, code...)
}
