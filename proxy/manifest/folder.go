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

// Load reads the .yaml and .yml files of a folder, without subfolders and hidden files, and returns a snapshot and its
// warnings. The error lists the faults of the manifests, or says why they cannot be read.
func Load(folder string) (*policy.Snapshot, []*Fault, error) {
	files, err := read(folder)
	if err != nil {
		return nil, nil, err
	}
	return build(files)
}

// file is the name and the content of one manifest file.
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
		// Kubernetes mounts files as symbolic links, which Stat follows.
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("read the folder of manifests: %w", err)
		}
		if info.IsDir() {
			continue
		}
		if info.Size() > MaxFile {
			return nil, &Fault{Position: Position{name, 1}, Reason: fmt.Sprintf("has %d bytes; allowed: up to %d", info.Size(), MaxFile)}
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

// Folder keeps a policy.Store up to date with a folder of manifests. It implements app.Source.
type Folder struct {
	path  string
	store *policy.Store
	log   *slog.Logger
	every time.Duration

	stats   string                 // names, sizes and times of the files when they were last read
	settled time.Time              // from then on, equal stats mean equal files; see settle
	seen    [sha256.Size]byte      // hash of the files' content; zero while the files cannot be read
	loaded  atomic.Int64           // snapshots put in force
	refused atomic.Int64           // changes refused
	failing atomic.Pointer[string] // why the current files are not in force; nil: they are
}

// NewFolder returns a Folder, and loads the manifests at path into store. The argument every is how often Run checks
// the folder. The error lists the faults of the manifests, or says why they cannot be read.
func NewFolder(path string, store *policy.Store, every time.Duration, log *slog.Logger) (*Folder, error) {
	f := &Folder{path: path, store: store, log: log, every: every}
	files, err := read(path)
	if err != nil {
		return nil, err
	}
	f.seen = sum(files)
	return f, f.apply(context.Background(), files)
}

// Run polls for changes until ctx ends. It logs a faulty change once, and keeps the previous snapshot in force.
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

// look applies the folder when its content has changed and two reads give the same content. Two reads can differ while
// a writer is changing several files.
func (f *Folder) look(ctx context.Context) {
	stats, err := stat(f.path)
	if err != nil {
		f.unreadable(ctx, err)
		return
	}
	now := time.Now()
	if stats == f.stats && now.After(f.settled) {
		return
	}
	if stats != f.stats {
		f.stats, f.settled = stats, now.Add(settle)
	}
	files, err := read(f.path)
	if err != nil {
		f.unreadable(ctx, err)
		return
	}
	content := sum(files)
	if content == f.seen {
		return
	}
	again, err := read(f.path)
	if err != nil || sum(again) != content {
		f.stats = ""
		return
	}
	f.seen = content
	if err := f.apply(ctx, files); err != nil {
		f.fail(ctx, err)
	}
}

// settle is the assumed resolution of file times. A second change within this time may leave the times equal, so look
// compares the content.
const settle = 2 * time.Second

// stat returns the names, sizes and times of the folder's files as one text.
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

// unreadable reports that the files cannot be read. look reads them again each time, and applies them once it can.
func (f *Folder) unreadable(ctx context.Context, err error) {
	f.stats, f.seen = "", [sha256.Size]byte{}
	f.fail(ctx, err)
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

// fail records why the folder's current files are not in force. It logs and counts a reason unless it is the same as
// the last one.
func (f *Folder) fail(ctx context.Context, err error) {
	why := err.Error()
	if last := f.failing.Swap(&why); last != nil && *last == why {
		return
	}
	f.refused.Add(1)
	f.log.LogAttrs(ctx, slog.LevelError, "manifests refused; the previous ones stay in force", slog.String("error", why))
}

// Healthy returns nil when the folder's files, as last checked, are in force, and otherwise the reason why they are
// not.
func (f *Folder) Healthy() error {
	if why := f.failing.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Loads returns how many versions of the folder the store has taken, and how often a version was refused for a new
// reason.
func (f *Folder) Loads() (applied, refused int64) { return f.loaded.Load(), f.refused.Load() }

func sum(files []file) [sha256.Size]byte {
	h := sha256.New()
	for _, f := range files {
		fmt.Fprintf(h, "%d %s %d ", len(f.name), f.name, len(f.text))
		h.Write(f.text)
	}
	return [sha256.Size]byte(bytes.Clone(h.Sum(nil)))
}
