package pgtest

import (
	"io"
	"os/exec"
	"syscall"
)

// sweep is a script that waits until the process at the other end of its input has ended. Then it kills the processes
// that still work in the data folder. These include paused ones, which the signal at their parent's death does not end.
// Finally it removes the folders.
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

// janitor is a process that cleans up after this one has ended. It is needed because a test binary that panics, times
// out or is killed runs no deferred calls.
type janitor struct {
	cmd  *exec.Cmd
	line io.WriteCloser // open as long as this process lives
}

// newJanitor returns a janitor that removes the server's data folder and dir if this process ends without
// [janitor.dismiss].
func newJanitor(data, dir string) (*janitor, error) { return newScriptJanitor(sweep, data, dir) }

// newScriptJanitor returns a janitor that runs the script with args if this process ends without [janitor.dismiss]. The
// script begins with a read that ends only then.
func newScriptJanitor(script string, args ...string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, args...)...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must end only the tests
	line, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &janitor{cmd: cmd, line: line}, nil
}

// dismiss ends the janitor. Call it after the folders have been removed.
func (j *janitor) dismiss() {
	_ = j.cmd.Process.Kill()
	_ = j.cmd.Wait() // the error only says that it was killed
	_ = j.line.Close()
}

// cleanUp lets the janitor clean up now, and does not wait for it.
func (j *janitor) cleanUp() {
	_ = j.line.Close()
	go func() { _ = j.cmd.Wait() }() // without it, the ended janitor would stay a zombie
}
