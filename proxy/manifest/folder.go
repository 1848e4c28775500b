package manifest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/lectern-dev/lectern/proxy/policy"
)

// Load reads the .yaml and .yml files of a folder, not those of folders within, into a snapshot. The error
// joins a [*Fault] for each thing that is wrong with them.
func Load(folder string) (*policy.Snapshot, []*Fault, error) {
	files, err := read(folder)
	if err != nil {
		return nil, nil, err
	}
	defer wipe(files)
	return build(files)
}

// file is one that was read.
type file struct {
	name string
	text []byte
}

func read(folder string) ([]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("read the folder of manifests: %w", err)
	}
	var files []file
	for _, e := range entries { // sorted by name
		name := e.Name()
		if ext := filepath.Ext(name); strings.HasPrefix(name, ".") || ext != ".yaml" && ext != ".yml" {
			continue
		}
		// Stat, as mounted files are symbolic links.
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read the folder of manifests: %w", err)
		}
		if info.IsDir() {
			continue
		}
		if info.Size() > MaxFile {
			return nil, &Fault{Place: Place{name, 1}, Reason: fmt.Sprintf("has %d bytes; allowed: up to %d", info.Size(), MaxFile)}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the folder of manifests: %w", err)
		}
		files = append(files, file{name, text})
	}
	return files, nil
}

func build(files []file) (*policy.Snapshot, []*Fault, error) {
	var o Objects
	defer o.Zero()
	var faults []error
	for _, f := range files {
		if err := Parse(&o, f.name, f.text); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, nil, errors.Join(faults...)
	}
	return Build(o)
}

// Folder keeps a policy.Store up to date with a folder.
type Folder struct {
	path  string
	store *policy.Store
	log   *slog.Logger
	every time.Duration

	stats   string            // of the files when they were last read
	settled time.Time         // when stats tells all: file times are no finer than that
	seen    [sha256.Size]byte // of their content
	loaded  atomic.Int64      // snapshots put in force
	refused atomic.Int64      // changes that were refused
	failing atomic.Pointer[string]
}

// NewFolder loads the folder at path into store. The error says what is wrong with it.
func NewFolder(path string, store *policy.Store, every time.Duration, log *slog.Logger) (*Folder, error) {
	f := &Folder{path: path, store: store, log: log, every: every}
	files, err := read(path)
	if err != nil {
		return nil, err
	}
	defer wipe(files)
	f.seen = sum(files)
	return f, f.apply(context.Background(), files)
}

// Run looks for changes until ctx ends. A change that is faulty is logged once, and what was in force stays.
func (f *Folder) Run(ctx context.Context) {
	ticker := time.NewTicker(f.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.look(ctx)
		}
	}
}

// look applies the folder when it is another than before, and the same when read twice: a writer may be in
// the middle of it.
func (f *Folder) look(ctx context.Context) {
	stats, err := stat(f.path)
	if err != nil {
		f.fail(ctx, err)
		return
	}
	now := time.Now()
	if stats == f.stats && now.After(f.settled) && !f.failingRead() {
		return
	}
	if stats != f.stats {
		f.stats, f.settled = stats, now.Add(settle)
	}
	files, err := read(f.path)
	if err != nil {
		f.fail(ctx, err)
		return
	}
	defer wipe(files)
	content := sum(files)
	if content == f.seen {
		if f.failingRead() {
			f.failing.Store(nil) // the folder can be read again, and is as it was
		}
		return
	}
	again, err := read(f.path)
	defer wipe(again)
	if err != nil || sum(again) != content {
		f.stats = ""
		return
	}
	f.seen = content
	if err := f.apply(ctx, files); err != nil {
		f.fail(ctx, err)
	}
}

// settle is how long after a change of file times another one may not show in them.
const settle = 2 * time.Second

// stat describes the folder's files without reading them.
func stat(folder string) (string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("read the folder of manifests: %w", err)
	}
	var b strings.Builder
	for _, e := range entries {
		if info, err := os.Stat(filepath.Join(folder, e.Name())); err == nil {
			fmt.Fprintf(&b, "%q %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
		}
	}
	return b.String(), nil
}

// wipe overwrites what was read: Secrets are among it.
func wipe(files []file) {
	for _, f := range files {
		clear(f.text)
	}
}

func (f *Folder) failingRead() bool {
	why := f.failing.Load()
	return why != nil && strings.HasPrefix(*why, "read the folder")
}

func (f *Folder) apply(ctx context.Context, files []file) error {
	s, warnings, err := build(files)
	if err != nil {
		return err
	}
	f.failing.Store(nil)
	f.loaded.Add(1)
	endpoints, credentials := len(s.Endpoints()), s.Credentials()
	f.store.Replace(s)
	for _, w := range warnings {
		f.log.LogAttrs(ctx, slog.LevelWarn, "manifest", slog.String("warning", w.Error()))
	}
	f.log.LogAttrs(ctx, slog.LevelInfo, "manifests in force", slog.Int("files", len(files)),
		slog.Int("endpoints", endpoints), slog.Int("credentials", credentials))
	return nil
}

// fail notes that the folder cannot be applied, and says so once for each reason.
func (f *Folder) fail(ctx context.Context, err error) {
	why := err.Error()
	if last := f.failing.Swap(&why); last != nil && *last == why {
		return
	}
	f.refused.Add(1)
	f.log.LogAttrs(ctx, slog.LevelError, "manifests refused; those before stay in force", slog.String("error", why))
}

// Healthy returns nil when what lies in the folder is in force, and otherwise why it is not.
func (f *Folder) Healthy() error {
	if why := f.failing.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Loads returns how many times the folder was put in force, and how many changes were refused.
func (f *Folder) Loads() (applied, refused int64) { return f.loaded.Load(), f.refused.Load() }

func sum(files []file) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d ", len(f.name), f.name, len(f.text))
		h.Write(f.text)
	}
	return [sha256.Size]byte(bytes.Clone(h.Sum(nil)))
}
