//go:build unix && !linux

package suite

import "syscall"

// processAttributes gives a program a process group of its own, so that Ctrl-C
// reaches only the one who started it.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
