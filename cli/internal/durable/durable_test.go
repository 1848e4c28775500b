package durable

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFileReplaces(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "f")
	for _, want := range []string{"first", "2"} {
		if err := WriteFile(path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o640 {
			t.Errorf("mode %v, %v, want 0640", info.Mode(), err)
		}
	}
	if left, _ := os.ReadDir(folder); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}
	if err := WriteFile(filepath.Join(folder, "none", "f"), nil, 0o600); err == nil {
		t.Error("no error for a missing folder")
	}
}

func TestLockIsForOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	f, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("a second lock: %v, want ErrLocked", err)
	}
	// A rename of the file frees the name. The file itself stays locked.
	if err := os.Rename(path, path+".done"); err != nil {
		t.Fatal(err)
	}
	second, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	_ = second.Close()
	if f, err = Lock(path); err != nil {
		t.Errorf("after it was closed: %v", err)
	} else {
		_ = f.Close()
	}
}
