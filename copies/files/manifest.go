package files

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/columns"
)

// layout is the version of the format of the manifest and of the columns in the files. A copy of another layout is an
// error.
const layout = 3

const manifestName = "manifest.json"

// manifest is the content of manifest.json: the source, the position and the files of a copy.
type manifest struct {
	Layout int `json:"layout"`
	copies.Source
	copies.Position
	// Writer is a random id of the process that opened the copy last.
	Writer    string    `json:"writer"`
	ChangedAt time.Time `json:"changed_at"`
	// Began is the number of the project's newest change when the copy began. Removals up to Began concern no row of
	// the copy.
	Began int64 `json:"began"`
	// Rewritten counts the files that erasures have rewritten.
	Rewritten int `json:"files_rewritten"`
	// Columns is the text of the choice of columns of entry_data, which must stay the same.
	Columns string `json:"columns"`
	// Masked is the text of the mask: the columns and keys of entry_data that are left out or hashed.
	Masked string `json:"masked"`
	// Revision is the revision of the columns that the version which opened the copy last writes. Unfilled is the
	// position after which rows may lack values in columns that a version added; nil if none do.
	Revision int64            `json:"revision"`
	Unfilled *copies.Position `json:"unfilled,omitempty"`
	Entries  []embeddable     `json:"entries"`
	Events   []file           `json:"events"`
	Removals []file           `json:"removals"`
	// The following lists have at most one file each, and none before the copy has the records.
	Embeddables []file `json:"embeddables"`
	Versions    []file `json:"embeddable_versions"`
	Experiments []file `json:"experiments"`
	History     []file `json:"experiment_history"`
}

// embeddable has the files with the entries of one embeddable, and the columns that these files have for keys of
// entry_data.
type embeddable struct {
	EmbeddableID string           `json:"embeddable_id"`
	Columns      []columns.Column `json:"columns"`
	Files        []file           `json:"files"`
}

// special matches the characters of an id that are escaped in the name of a folder.
var special = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// folder returns the path of the folder that has the embeddable's files. The folder's name is the id, in which each
// special byte is ~ and two hex digits. For an empty or a long id, the name ends with a digest.
func (e embeddable) folder() string {
	name := special.ReplaceAllStringFunc(e.EmbeddableID, func(s string) string {
		return strings.ReplaceAll(fmt.Sprintf("~% x", s), " ", "~")
	})
	const longest = 100
	if name == "" || len(name) > longest {
		name = fmt.Sprintf("%.*s~%x", longest, name, sha256.Sum256([]byte(e.EmbeddableID)))
	}
	return "entries/" + name
}

// file describes a Parquet file of the copy, as in the manifest. Rows of entries, events and removals are ordered by
// the number of their change.
type file struct {
	Path  string `json:"path"` // relative to the manifest
	Rows  int    `json:"rows"`
	Bytes int    `json:"bytes"`
	// SHA256 is the SHA-256 digest of the file's content, in hexadecimal digits.
	SHA256 string `json:"sha256"`
	// FirstSeq and LastSeq are the numbers of the changes of the first and the last row; 0 without rows.
	FirstSeq int64 `json:"first_seq"`
	LastSeq  int64 `json:"last_seq"`
	// until is the LastSeq that the file had before a repair. Rows up to until belong into the file.
	until int64
}

// load reads and checks the manifest. In an empty storage, load makes the manifest of a new copy. A storage with other
// files and no manifest is an error.
func (d *Destination) load(ctx context.Context) error {
	data, version, err := d.read(ctx, manifestName)
	missing := errors.Is(err, fs.ErrNotExist)
	if err != nil && !missing {
		return err
	}
	objects, err := d.list(ctx)
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for _, o := range objects {
		if !o.past {
			there[o.name] = true
		}
	}
	d.sets, d.version = map[string]*columns.Set{}, version
	if !missing {
		return d.check(data, there)
	}
	for name := range there {
		if !unfinished.MatchString(name) && !strings.HasPrefix(name, probePrefix) {
			return fmt.Errorf("%s has files (%s) and no %s, so it is no copy of lectern sync: give an empty place", d, name, manifestName)
		}
	}
	d.manifest = *d.fresh()
	return nil
}

// fresh returns the manifest of a new copy.
func (d *Destination) fresh() *manifest {
	return &manifest{
		Layout: layout, Source: d.Source, Columns: d.Columns.String(), Masked: d.Mask.String(), Revision: d.since.Number, Entries: []embeddable{}, Events: []file{}, Removals: []file{},
		Embeddables: []file{}, Versions: []file{}, Experiments: []file{}, History: []file{},
	}
}

// check uses the manifest in data, if it is of the same source and options. there has the names of existing files; a
// missing file is an error, except for a repair.
func (d *Destination) check(data []byte, there map[string]bool) error {
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return fmt.Errorf("%s of %s is not one of lectern sync (%w): give an empty place", manifestName, d, err)
	}
	if err := m.made().Check(d.fresh().made(), d.Mask, d.Moved, d.String()+" has a copy", "another place for a new copy"); err != nil {
		return err
	}
	for name := range m.files() {
		if !there[name] && !d.Repair {
			return fmt.Errorf("%s lacks the file %s, which its %s names: restore it, or make a new copy in an empty place", d, name, manifestName)
		}
	}
	m.Source = d.Source
	d.manifest = m
	for _, e := range m.Entries {
		d.sets[e.EmbeddableID] = d.Columns.Restore(e.Columns)
	}
	return nil
}

// made returns the facts with which the copy was made.
func (m *manifest) made() copies.Made {
	return copies.Made{Source: m.Source, Layout: int64(m.Layout), Settings: []copies.Setting{{Flag: "--columns", Value: m.Columns}}, Masked: m.Masked}
}

var (
	// ownName matches the names that this package gives to Parquet files. clean removes such a file if the manifest
	// does not name it.
	ownName = regexp.MustCompile(`^(entries/[^/]+|[a-z_]+)/[0-9]{20}-[0-9a-f]{16}\.parquet$`)
	// unfinished matches the names of temporary files that remain if a process ends while it writes to a folder.
	unfinished = regexp.MustCompile(`^((entries/[^/]+|[a-z_]+)/)?\.(manifest\.json|[0-9]{20}-[0-9a-f]{16}\.parquet|(entries|events)-[0-9]{20}-[0-9a-f]{16}\.ndjson)\.[0-9]+$`)
)

// probePrefix begins the names of the objects with which a process tests conditional writes in a bucket. Other
// processes ignore and never remove these objects.
const probePrefix = ".probe."

// clean removes temporary files, and Parquet files of this package that the manifest does not name. In a bucket, clean also
// removes the past versions of the manifest and of lost rows. clean keeps files in d.replaced, which readers may still need.
func (d *Destination) clean(ctx context.Context) error {
	objects, err := d.list(ctx)
	if err != nil {
		return err
	}
	named := d.manifest.files()
	for _, o := range objects {
		_, kept := d.replaced[o.name]
		if unfinished.MatchString(o.name) || ownName.MatchString(o.name) && !named[o.name] && !kept || (o.name == manifestName || lostName.MatchString(o.name)) && o.past {
			if err := d.remove(ctx, o); err != nil {
				return fmt.Errorf("remove %s, which is no part of the copy: %w", o.name, err)
			}
		}
	}
	return nil
}

// keepReplaced is the least time for which a replaced file remains, unless an erasure or Open removes the file before.
// Readers that read an older manifest may still need the file.
const keepReplaced = time.Hour

// exchange commits the manifest next. Once a file was replaced more than twice keepReplaced ago, exchange removes all
// files that were replaced more than keepReplaced ago.
func (d *Destination) exchange(ctx context.Context, next manifest) error {
	before := d.manifest.files()
	if err := d.commit(ctx, next); err != nil {
		return err
	}
	named, now := d.manifest.files(), time.Now()
	for name := range before {
		if !named[name] {
			d.replaced[name] = now
		}
	}
	due := false
	for _, since := range d.replaced {
		due = due || now.Sub(since) > 2*keepReplaced
	}
	if !due {
		return nil
	}
	maps.DeleteFunc(d.replaced, func(_ string, since time.Time) bool { return now.Sub(since) > keepReplaced })
	return d.clean(ctx)
}

// commit replaces manifest.json by m. In a bucket, commit fails if another process has replaced manifest.json since
// this process read it.
func (d *Destination) commit(ctx context.Context, m manifest) error {
	m.ChangedAt = time.Now().UTC().Truncate(time.Second)
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	version, err := d.replace(ctx, manifestName, append(data, '\n'), d.version)
	if errors.Is(err, errChanged) {
		return fmt.Errorf("another sync writes to %s: run one at a time", d)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", manifestName, err)
	}
	d.manifest, d.version = m, version
	return nil
}

// files returns the set of the paths of all files that the manifest names.
func (m *manifest) files() map[string]bool {
	named := map[string]bool{}
	for _, f := range m.all() {
		named[f.Path] = true
	}
	return named
}

// all returns all files that the manifest names, of all kinds, such as entries, events and experiments.
func (m *manifest) all() []file {
	lists := [][]file{m.Events, m.Removals, m.Embeddables, m.Versions, m.Experiments, m.History}
	for _, e := range m.Entries {
		lists = append(lists, e.Files)
	}
	return slices.Concat(lists...)
}

func random() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // rand.Read never fails
	return hex.EncodeToString(b)
}
