package pglocal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// archive returns the path of the archive in the cache for this version of Postgres and initdbOptions. The file may not
// exist.
func (s *Server) archive(ctx context.Context) (string, error) {
	version, err := exec.CommandContext(ctx, filepath.Join(s.bin, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("postgres --version: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q", version, initdbOptions))
	return filepath.Join(s.options.Cache, "postgres-"+hex.EncodeToString(sum[:8])+".tar"), nil
}

// unpack makes the data and the password from an archive. The error wraps [fs.ErrNotExist] if there is no archive.
//
// The server's user may not be able to read the cache. So this process opens the archive, and tar reads the open file.
func (s *Server) unpack(ctx context.Context, archive string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	f := s.folder
	unfinished := f.data() + ".new"
	if err := errors.Join(os.RemoveAll(unfinished), f.owner.privateDir(unfinished)); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "tar", "-x", "-C", unfinished, "-f", "-")
	cmd.Stdin = in
	if err := s.run(ctx, cmd); err != nil {
		return fmt.Errorf("%s cannot be used, remove it: %w", archive, err)
	}
	for _, name := range []string{f.password(), f.data()} { // the data last, because it completes the folder
		if err := os.Rename(filepath.Join(unfinished, filepath.Base(name)), name); err != nil {
			return err
		}
	}
	if err := os.Remove(unfinished); err != nil {
		return err
	}
	_, err = s.holdsData()
	return err
}

// pack writes the data and the password to an archive. Other processes may write the same archive at the same time,
// because each process renames a complete file.
func (s *Server) pack(ctx context.Context, archive string) error {
	if err := os.MkdirAll(filepath.Dir(archive), 0o700); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(archive), ".new-*") // CreateTemp uses mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	cmd := exec.CommandContext(ctx, "tar", "-c", "-C", s.folder.root, "-f", "-", filepath.Base(s.folder.password()), filepath.Base(s.folder.data()))
	cmd.Stdout = out
	err = s.run(ctx, cmd)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(out.Name(), archive)
}
