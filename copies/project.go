package copies

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Project has the records of a project that have no feed: embeddables, experiments and their versions and history. A
// destination replaces its records of each part by the part. A part that is nil is unchanged or unknown: the API key
// may not read the part, or the server lacks it. Then the destination keeps its records. An empty part means that the source
// has no records.
//
// Each iteration reads the records from the API, so that a destination does not need to hold all in memory. An error is
// the last pair, and the destination must return an error with that error in its chain.
type Project struct {
	// Embeddables are ordered by id, and Versions by embeddable and then by number. If SomeEmbeddables is set, both have
	// only changed records, which replace those with the same ids, and the destination keeps the others.
	Embeddables     iter.Seq2[client.EmbeddableWithDefinition, error]
	Versions        iter.Seq2[client.EmbeddableVersionWithDefinition, error]
	SomeEmbeddables bool
	// Experiments has the newest experiment first. History has the changes of each experiment's status, the oldest
	// first. SomeExperiments is for both as SomeEmbeddables.
	Experiments     iter.Seq2[client.Experiment, error]
	History         iter.Seq2[StatusChange, error]
	SomeExperiments bool
}

// StatusChange is one change of an experiment's status, with the experiment's id and the number of the change.
type StatusChange struct {
	ExperimentID string `json:"experiment_id"`
	// Change is the number of the change within its experiment. The first change is 1.
	Change int64 `json:"change"`
	client.ExperimentStatusChange
}

// Sound returns an iterator over list whose errors are all nil, for functions that take an iterator with errors. For a
// nil list, the iterator is nil.
func Sound[T any](list []T) iter.Seq2[T, error] {
	if list == nil {
		return nil
	}
	return func(yield func(T, error) bool) {
		for _, record := range list {
			if !yield(record, nil) {
				return
			}
		}
	}
}

// A copy that follows the feed reads the records without a feed at most once in projectEvery. The pause between two
// readings is at least projectShare times as long as a reading.
const (
	projectEvery = time.Minute
	projectShare = 20
)

// look reads what has changed of the records without a feed for a batch that is current, if the destination takes them.
// If something has, look puts the records and their state into the batch. If the copy follows the feed, look reads only
// after a pause: see projectEvery.
func (r *run) look(ctx context.Context, b *Batch) error {
	began := time.Now()
	if !r.Destination.Traits().Project || !b.Current || r.Follow && began.Before(r.nextLook) {
		return nil
	}
	project, state, err := r.readProject(ctx, b.Position.Project)
	if err != nil {
		return err
	}
	if state != b.Position.Project {
		b.Project, b.Position.Project = project, state
	}
	now := time.Now()
	r.nextLook = now.Add(max(projectEvery, projectShare*now.Sub(began)))
	return nil
}

// readProject reads the records without a feed that have changed since the state was, all if was is "". state is the
// state of the records for [Position]. A part's state is the number of its last change, or unknown. For a server of
// version 0.1.0, which gives no numbers, the state is a digest, and the part has all records.
func (o *Options) readProject(ctx context.Context, was string) (p *Project, state string, err error) {
	p = &Project{}
	before := map[string]string{}
	for part := range strings.FieldsSeq(was) {
		name, state, _ := strings.Cut(part, "=")
		before[name] = state
	}
	embeddables, err := o.part("embeddables", before, func(after int64) (string, error) { return o.readEmbeddables(ctx, p, after) })
	if err != nil {
		return nil, "", err
	}
	experiments, err := o.part("experiments", before, func(after int64) (string, error) { return o.readExperiments(ctx, p, after) })
	return p, "embeddables=" + embeddables + " experiments=" + experiments, err
}

// noNumber reads a part from a server that gives no numbers.
const noNumber = -1

// part calls read, which reads a part of the project that has changed after a number, and returns its state. If the API
// key may not read the part, or the server lacks it, part tells the user.
func (o *Options) part(name string, before map[string]string, read func(after int64) (state string, err error)) (string, error) {
	after, err := strconv.ParseInt(before[name], 10, 64)
	if err != nil {
		after = 0
	}
	state, err := read(after)
	switch client.Code(err) {
	case client.CodeHistoryLost:
		state, err = read(0)
	case client.CodeInvalidParameter:
		state, err = read(noNumber)
	}
	missing := notFound(err)
	if client.Code(err) != client.CodeInsufficientScope && !missing {
		return state, err
	}
	advice := "mint a key with the scope " + name + ":read"
	if missing {
		advice = "the server at " + o.Source.URL + " does not have them"
	}
	o.Note(fmt.Sprintf("The copy gets no %s: %s.", name, advice))
	return "unknown", nil
}

func notFound(err error) bool {
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusNotFound
}

// changedAfter returns the parameter changed_after of a list.
func changedAfter(after int64) *int64 {
	if after == noNumber {
		return nil
	}
	return &after
}

// readEmbeddables sets the embeddables of p that changed after a number, and their versions, all for 0.
func (o *Options) readEmbeddables(ctx context.Context, p *Project, after int64) (state string, err error) {
	project, number := o.Source.ProjectID, int64(0)
	var ids []string
	var versions []client.EmbeddableVersion
	for cursor, first := "", true; first || cursor != ""; first = false {
		query := client.EmbeddableQuery{Paging: client.Paging{Cursor: cursor}, ChangedAfter: changedAfter(after)}
		page, err := o.Client.EmbeddablesPage(ctx, project, query)
		if err != nil {
			return "", err
		}
		for _, e := range page.Records {
			ids = append(ids, e.EmbeddableID)
		}
		if cursor = page.NextCursor; first {
			number = page.LastSeq
		}
	}
	if after > 0 && len(ids) == 0 {
		return strconv.FormatInt(number, 10), nil
	}
	for _, id := range ids {
		query := client.VersionQuery{Direction: client.Ascending, ChangedAfter: changedAfter(after)}
		for v, err := range o.Client.Versions(ctx, project, id, query) {
			if notFound(err) {
				break
			}
			if err != nil {
				return "", err
			}
			versions = append(versions, v)
		}
	}
	at := client.EmbeddableQuery{}.List(project).String() + "/"
	p.SomeEmbeddables = after > 0
	p.Embeddables = each(ids, func(id string) (client.EmbeddableWithDefinition, error) {
		e, err := get[client.EmbeddableWithDefinition](ctx, o, at+url.PathEscape(id), number)
		o.Mask.record(&e)
		return e, err
	})
	p.Versions = each(versions, func(v client.EmbeddableVersion) (client.EmbeddableVersionWithDefinition, error) {
		d, err := get[client.EmbeddableVersionWithDefinition](ctx, o, fmt.Sprintf("%s%s/versions/%d", at, url.PathEscape(v.EmbeddableID), v.Number), number)
		o.Mask.record(&d)
		return d, err
	})
	if after != noNumber {
		return strconv.FormatInt(number, 10), nil
	}
	return digest(p.Embeddables, versions) // the definition of a version never changes
}

// get reads one record at a path, which is at least as new as the change number of the list. Without a number, a standby
// may answer that lags behind the list.
func get[T any](ctx context.Context, o *Options, path string, number int64) (record T, err error) {
	if number > 0 {
		path += "?changed_after=" + strconv.FormatInt(number, 10)
	}
	at, err := client.ListAt(path)
	if err != nil {
		return record, err
	}
	body, _, err := o.Client.JSON(ctx, at, "", 0)
	if client.Code(err) == client.CodeHistoryLost {
		return record, Temporary(errors.New("the source was restored while its embeddables and experiments were read")) // the next look reads all
	}
	if err == nil {
		err = json.Unmarshal(body, &record)
	}
	return record, err
}

// digest returns the digest of records and of more as the state of a part.
func digest[T any](records iter.Seq2[T, error], more any) (string, error) {
	sum := sha256.New()
	add := json.NewEncoder(sum)
	for record, err := range records {
		if err == nil {
			err = add.Encode(record)
		}
		if err != nil {
			return "", err
		}
	}
	err := add.Encode(more)
	return "sha256:" + hex.EncodeToString(sum.Sum(nil)), err
}

// each returns an iterator that reads the record of each key when needed. each leaves out records that the server no
// longer has. An error ends the iteration as the last pair.
func each[K, T any](keys []K, read func(K) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, key := range keys {
			record, err := read(key)
			if notFound(err) {
				continue
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

// readExperiments sets the experiments of p that changed after a number, and the history of their status, all for 0.
func (o *Options) readExperiments(ctx context.Context, p *Project, after int64) (state string, err error) {
	project := o.Source.ProjectID
	page, err := o.Client.ExperimentsPage(ctx, project, client.ExperimentQuery{Paging: client.Paging{PageSize: 1}, ChangedAfter: changedAfter(after)})
	if err != nil || after > 0 && len(page.Records) == 0 {
		return strconv.FormatInt(page.LastSeq, 10), err
	}
	at := client.ExperimentQuery{}.List(project).String() + "/"
	experiments := o.Client.Experiments(ctx, project, client.ExperimentQuery{ChangedAfter: changedAfter(after)})
	p.SomeExperiments = after > 0
	p.Experiments = func(yield func(client.Experiment, error) bool) {
		for e, err := range experiments {
			o.Mask.record(&e)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
	p.History = func(yield func(StatusChange, error) bool) {
		for e, err := range experiments {
			var changes []client.ExperimentStatusChange
			if err == nil {
				changes, err = get[[]client.ExperimentStatusChange](ctx, o, at+url.PathEscape(e.ID)+"/history", page.LastSeq)
			}
			if err != nil && !notFound(err) {
				yield(StatusChange{}, err)
				return
			}
			for i, c := range changes {
				status := StatusChange{e.ID, int64(i + 1), c}
				o.Mask.record(&status)
				if !yield(status, nil) {
					return
				}
			}
		}
	}
	if after != noNumber {
		return strconv.FormatInt(page.LastSeq, 10), nil
	}
	return digest(p.Experiments, page.LastSeq)
}
