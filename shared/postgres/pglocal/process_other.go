//go:build !linux

package pglocal

import (
	"bufio"
	"bytes"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes returns the attributes of a child process. Ctrl-C in the terminal does not reach the child. The child may
// outlive this process, because only Linux can end a child with its parent.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// worksIn returns true, because there is no portable way to find a process's working folder. So the caller must trust
// postmaster.pid.
func worksIn(int, string) bool { return true }

func processesIn(string) []int { return nil }

// childrenOf returns the ids of the child processes of the postmaster pid.
func childrenOf(pid int, _ string) []int {
	out, err := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	if err != nil {
		return nil
	}
	var pids []int
	for sc := bufio.NewScanner(bytes.NewReader(out)); sc.Scan(); {
		fields := strings.Fields(sc.Text())
		if len(fields) != 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(fields[0]); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
