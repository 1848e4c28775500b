package pglocal

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the operating system's user that the server runs as. Postgres refuses to run as root.
type owner struct {
	uid, gid uint32
	switched bool // not the user of this process, so child processes need its credential
}

// ownerOf returns the user that the server of folder runs as: this process's own user, unless that is root. A process
// of root uses the owner of an existing folder unless that is root, else the user postgres, else nobody.
func ownerOf(folder string) (owner, error) {
	if uid := os.Geteuid(); uid != 0 {
		return owner{uid: uint32(uid), gid: uint32(os.Getegid())}, nil
	}
	if info, err := os.Stat(folder); err == nil {
		if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
			return owner{uid: st.Uid, gid: st.Gid, switched: true}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return owner{uid: uint32(uid), gid: uint32(gid), switched: true}, nil
		}
	}
	return owner{}, fmt.Errorf("we are root, Postgres may not be, and there is no user postgres or nobody to run it as")
}

// as makes cmd run as the user o, if o is not the user of this process.
func (o owner) as(cmd *exec.Cmd) {
	if !o.switched {
		return
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
}

// mayEnter reports whether o can work in dir, with the permissions of all folders that contain dir. The error says that
// the process that tries did not run to its end, as on a machine without room for another process.
func (o owner) mayEnter(dir string) (bool, error) {
	if !o.switched {
		return true, nil
	}
	// Test the access with a process, because modes do not show ACLs and mounts.
	cmd := exec.Command("/bin/sh", "-c", `cd -- "$1" && test -w . && test -x .`, "sh", dir)
	cmd.Dir = "/"
	o.as(cmd)
	err := cmd.Run()
	if refused, ok := errors.AsType[*exec.ExitError](err); ok && refused.Exited() {
		return false, nil
	}
	return err == nil, err
}

// privateDir creates dir, or checks an existing dir, as a folder of o that no other user may enter. The parent of dir
// may be a folder with the sticky bit in which all users may write. So privateDir does not trust an existing file or
// folder.
func (o owner) privateDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || !info.IsDir():
		return fmt.Errorf("%s is not a folder", dir)
	case st.Uid == o.uid:
	case st.Uid == 0 && o.switched: // owned by root, which is this process's user
		if err := os.Lchown(dir, int(o.uid), int(o.gid)); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s belongs to the user with id %d; Postgres would run as %d. Remove it, or run as its owner",
			dir, st.Uid, o.uid)
	}
	if info.Mode().Perm() != 0o700 {
		return os.Chmod(dir, 0o700)
	}
	return nil
}

// writeFile writes data to a new file at path that only o and root can read. writeFile replaces an existing file.
func (o owner) writeFile(path string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*") // CreateTemp uses mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(data)
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil && o.switched {
		err = os.Lchown(tmp.Name(), int(o.uid), int(o.gid))
	}
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}
