package stage

import (
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// heir is a process that ends a cluster when this one cannot: servers that a program has started are no
// children of this process, and do not end with it when it is killed.
type heir struct {
	cmd  *exec.Cmd
	line io.WriteCloser // held open for as long as this process lives
}

// inherit waits for the end of its input, which is that of the process at its other end.
const inherit = `
read -r _
CITUS_HOME=$2 CITUS_PORT=$3 "$1" down
rm -rf -- "$2"
`

// hire starts an heir of the cluster that program has made in the folder home.
func hire(program, home string, port int) (*heir, error) {
	cmd := exec.Command("/bin/sh", "-c", inherit, "sh", program, home, strconv.Itoa(port))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what interrupts this process does not reach it
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &heir{cmd: cmd, line: line}, nil
}

// dismiss ends the heir: there is nothing to inherit any more.
func (h *heir) dismiss() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait() // it was killed
	_ = h.line.Close()
}
