package stage

import (
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// watchdog is a process that stops a cluster if this process is killed. The cluster's servers are not children of this
// process, so they would run on.
type watchdog struct {
	cmd  *exec.Cmd
	line io.WriteCloser // open while this process lives
}

// stopAtEndOfInput waits for the end of its input, which ends with this process. Then it stops the cluster.
const stopAtEndOfInput = `
read -r _
CITUS_HOME=$2 CITUS_PORT=$3 "$1" down
rm -rf -- "$2"
`

// startWatchdog starts a watchdog for the cluster that program has made in the folder home.
func startWatchdog(program, home string, port int) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", stopAtEndOfInput, "sh", program, home, strconv.Itoa(port))
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it does not receive interrupts of this process
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &watchdog{cmd: cmd, line: line}, nil
}

// stop ends the watchdog, after the cluster was stopped.
func (w *watchdog) stop() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait() // it was killed
	_ = w.line.Close()
}
