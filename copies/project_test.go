package copies_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lectern-dev/lectern/client"
	"github.com/lectern-dev/lectern/client/clienttest"
	"github.com/lectern-dev/lectern/copies"
	"github.com/lectern-dev/lectern/copies/internal/copytest"
)

// memory is a copy that has a position and the last project that it got.
type memory struct {
	at       copies.Position
	projects int
	unknown  []string
	titles   map[string]string // of embeddables
	versions []client.EmbeddableVersionWithDefinition
	statuses []string // of experiments, by their history
	away     int      // how often it is out of reach
}

func (m *memory) Open(context.Context) (copies.Position, error) {
	if m.away--; m.away >= 0 {
		return copies.Position{}, copies.Temporary(errors.New("out of reach"))
	}
	return m.at, nil
}
func (*memory) Traits() copies.Traits { return copies.Traits{Project: true} }

func (*memory) Limits() copies.Limits { return copies.Limits{Changes: 20, Bytes: 8 << 10} }
func (*memory) Close() error          { return nil }

func (m *memory) Apply(_ context.Context, b *copies.Batch) error {
	m.at = b.Position
	if b.Project == nil {
		return nil
	}
	was := *m
	*m = memory{at: b.Position, projects: was.projects + 1, titles: map[string]string{}}
	if b.Project.Embeddables == nil || b.Project.Versions == nil {
		m.unknown = append(m.unknown, "embeddables")
	} else {
		for e, err := range b.Project.Embeddables {
			if err != nil {
				return err
			}
			m.titles[e.EmbeddableID] = e.Title + e.Definition
		}
		for v, err := range b.Project.Versions {
			if err != nil {
				return err
			}
			m.versions = append(m.versions, v)
		}
	}
	if b.Project.Experiments == nil || b.Project.History == nil {
		m.unknown = append(m.unknown, "experiments")
		return nil
	}
	for c, err := range b.Project.History {
		if err != nil {
			return err
		}
		m.statuses = append(m.statuses, c.ExperimentID+" "+string(*c.Status))
	}
	return nil
}

// A destination gets what has changed of the project, and as much as the key may read.
func TestProject(t *testing.T) {
	t.Parallel()
	s := copytest.NewSource(t)
	m := &memory{}
	var notes []string
	sync := func(projects int, unknown ...string) {
		t.Helper()
		before := m.projects
		_, err := s.Sync(t.Context(), m, func(o *copies.Options) { o.Note = func(text string) { notes = append(notes, text) } })
		if err != nil || m.projects-before != projects || !slices.Equal(m.unknown, unknown) {
			t.Errorf("%v, %d projects without %v; want %d without %v", err, m.projects-before, m.unknown, projects, unknown)
		}
	}
	deny := func(path string) clienttest.Answer {
		return clienttest.Answer{Path: path, Status: 403, Code: client.CodeInsufficientScope, Always: true}
	}
	sync(1) // one without records
	s.Fill(0, 30)
	sync(0)
	s.Define("emb_1", 12, client.Draft, 1)
	s.Define("emb/2", 1, client.Running, 1)
	sync(1)
	if diff := cmp.Diff(map[string]string{"emb_1": `Title ü{"n":12}`, "emb/2": `Title ü{"n":1}`}, m.titles); diff != "" {
		t.Error(diff)
	}
	if len(m.versions) != 13 || m.versions[0].EmbeddableID != "emb/2" || m.versions[12].Number != 12 || m.versions[12].Definition != `{"v":12}` {
		t.Errorf("%+v", m.versions)
	}
	sync(0)
	s.Define("emb_1", 12, client.Paused, 2) // a change of the experiment alone
	sync(1, "embeddables")
	if diff := cmp.Diff([]string{"exp_emb_1 draft", "exp_emb_1 paused"}, m.statuses); diff != "" {
		t.Error(diff)
	}
	if len(notes) > 0 {
		t.Errorf("%q", notes)
	}
	s.Define("emb_1", 13, client.Paused, 2) // a version and the definition
	sync(1, "experiments")
	if diff := cmp.Diff(map[string]string{"emb_1": `Title ü{"n":13}`}, m.titles); diff != "" || len(m.versions) != 1 || m.versions[0].Number != 13 {
		t.Errorf("%s, %+v", diff, m.versions)
	}
	s.API.Order(deny("/embeddables"))
	sync(1, "embeddables", "experiments")
	s.API.Order(deny("/embeddables"), deny("/experiments"))
	sync(1, "embeddables", "experiments")
	if len(notes) != 3 || notes[0] != "The copy gets no embeddables: mint a key with the scope embeddables:read." {
		t.Errorf("%q", notes)
	}
}

// TestDestinationOutOfReachAtTheStart checks that a sync that follows waits for a destination that is out of reach at its
// start. Another sync fails.
func TestDestinationOutOfReachAtTheStart(t *testing.T) {
	t.Parallel()
	s := copytest.NewSource(t)
	s.Fill(0, 3)
	if _, err := s.Sync(t.Context(), &memory{away: 1}, func(o *copies.Options) { o.Attempts = 2 }); err == nil || !strings.Contains(err.Error(), "out of reach") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	_, err := s.Sync(ctx, &memory{away: 1}, func(o *copies.Options) {
		o.Follow, o.Attempts, o.Progress = true, 2, func(p copies.Progress) {
			if p.Changes == 9 {
				cancel()
			}
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
