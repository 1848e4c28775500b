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

// attributes returns attributes of a child that Ctrl-C in the terminal does not reach. Only Linux can end it with
// this process.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// worksIn trusts postmaster.pid: there is no portable way to find a process's working folder.
func worksIn(int, string) bool { return true }

func processesIn(string) []int { return nil }

func childrenOf(pid int) []int {
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
