package pgtest

import (
	"io"
	"os/exec"
	"syscall"
)

// sweep waits until whoever holds the other end of its input is gone, ends what still works in the
// data (also what is paused, which its parent's death does not reach) and removes the folders.
const sweep = `
read -r _
for i in 1 2 3 4 5 6 7 8 9 10; do
	left=
	for p in /proc/[0-9]*; do
		if [ "$(readlink "$p/cwd" 2>/dev/null)" = "$1/data" ]; then
			kill -9 "${p#/proc/}" 2>/dev/null
			left=yes
		fi
	done
	[ -z "$left" ] && break
	sleep 0.2
done
rm -rf -- "$1" "$2"
`

// janitor is a process that outlives this one for a moment, to remove what it could not remove itself:
// a test binary that panics, times out or is killed runs no deferred calls.
type janitor struct {
	cmd  *exec.Cmd
	line io.WriteCloser // held open for as long as this process lives
}

// hire has the server's data folder and dir removed when this process ends without [janitor.dismiss].
func hire(data, dir string) (*janitor, error) { return hireFor(sweep, data, dir) }

// hireFor has the script run with args when this process ends without [janitor.dismiss]. It begins by
// reading what never comes.
func hireFor(script string, args ...string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the tests
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &janitor{cmd: cmd, line: line}, nil
}

// dismiss ends the janitor, after the folders have been removed.
func (j *janitor) dismiss() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait() // it was killed
	_ = j.line.Close()
}
