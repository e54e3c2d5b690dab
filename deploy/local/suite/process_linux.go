package suite

import "syscall"

// processAttributes gives a program a process group of its own, so that Ctrl-C
// reaches only the one who started it, and ends it together with that one.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
