package demo

import (
	"io"
	"time"

	"github.com/lectern-dev/lectern/client"
)

// Experiment is an experiment in the form of the ingest endpoint, which names the project.
type Experiment struct {
	ProjectID string `json:"project_id"`
	client.Experiment
}

// WriteExperiments writes the experiments of [Experiments] as NDJSON.
func WriteExperiments(w io.Writer) error { return writeEach(w, Experiments()) }

// Experiments returns the project's experiments, the oldest first. Each possible status occurs at least once.
func Experiments() []Experiment {
	const solar, loan, skin = "emb_solar7kq2", "emb_loan3xw9d", "emb_skin5mh8t"
	return []Experiment{
		experiment("exp_first4vn", skin, -12, 19, func(e *Experiment) {
			e.Status = new(client.Discarded)
			e.Name = new("Video on the first page")
			e.Observations = new("The video never loaded on slow connections.")
			e.Attachments = text([]pairs{})
		}),
		experiment("exp_headline8rk", solar, 2, 26, func(e *Experiment) {
			e.Status, e.WinnerVariant = new(client.Completed), new("variant_a")
			e.Name = new("A question as headline")
			e.Hypothesis = new("A question makes more visitors begin than a statement does.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"start_rate", "completion_rate"}, []string{"estimate_eur"}
			e.Observations = new("Nearly all of the gain is on phones.")
			e.Outcome = new("8 % more visitors begin; rolled out with version 2.")
			e.Attachments = text([]pairs{
				{{"url", "https://files.example.com/headline-result.pdf"}, {"name", "Result.pdf"}},
				{{"url", "https://files.example.com/headline-phones.png"}, {"name", "Phones, by week.png"}},
			})
			e.Variants = text(pairs{{"control", variant("Statement", 1, 50)}, {"variant_a", variant("Question", 2, 50)}})
		}),
		experiment("exp_language2tz", loan, 18, 47, func(e *Experiment) {
			e.Status, e.WinnerVariant = new(client.WinnerPicked), new("variant_b")
			e.Name = new("English instead of German")
			e.Hypothesis = new("Most visitors who leave on the first page do not read German.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"completion_rate"}, []string{"documents_ready", "price_eur"}
			e.Observations = new("Both languages side by side confused more than they helped.")
			e.Attachments = text([]pairs{})
			e.Variants = text(pairs{
				{"control", variant("Deutsch", 1, 34)}, {"variant_a", variant("Both", 1, 33)}, {"variant_b", variant("English", 2, 33)},
			})
		}),
		experiment("exp_progress6qm", solar, 44, 61, func(e *Experiment) {
			e.Status, e.WinnerVariant = new(client.Completed), new("variant_a")
			e.Name = new("Show how far it is")
			e.Hypothesis = new("Who sees the end is more likely to get there.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"completion_rate", "time_to_complete"}, []string{}
			e.Outcome = new("3 % more visitors reach the estimate.")
			e.Attachments = text([]pairs{})
			e.Variants = text(pairs{{"control", variant("Without", 2, 50)}, {"variant_a", variant("With a bar", 3, 50)}})
		}),
		experiment("exp_budget9hc", skin, 58, 80, func(e *Experiment) {
			e.Status, e.PausedShowingVariant = new(client.Paused), new("control")
			e.Name = new("Ask for the budget later")
			e.Hypothesis = new("Asked after the result, the budget keeps nobody from it.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"completion_rate"}, []string{"product_clicked"}
			e.Observations = new("Paused: the shop was down for a day.")
			e.Attachments = text([]pairs{{{"url", "https://files.example.com/budget-plan.pdf"}, {"name", "Plan (v2).pdf"}}})
			e.Variants = text(pairs{{"control", variant("On the page of the routine", 3, 50)}, {"variant_a", variant("After the result", 3, 50)}})
		}),
		experiment("exp_twominutes5wd", solar, 77, 88, func(e *Experiment) {
			e.Status = new(client.Running)
			e.Name = new("Name the time it takes")
			e.Hypothesis = new("\"Two minutes\" makes more visitors begin.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"start_rate"}, []string{"completion_rate"}
			e.Attachments = text([]pairs{})
			e.Variants = text(pairs{{"control", variant("Without", 3, 20)}, {"variant_a", variant("With", 4, 80)}})
		}),
		experiment("exp_contact3yp", solar, 83, 86, func(e *Experiment) {
			e.Status = new(client.Running)
			e.Name = new("One page of contact for all")
			e.Hypothesis = new("The same page in both flows is enough.")
			e.ImpactMetrics, e.NoImpactMetrics = []string{"form_started"}, []string{}
			e.FlowIDs = []string{solar, loan}
			e.Variants = text(pairs{{"control", variant("As it is", 4, 50)}, {"variant_a", variant("One for all ☀️", 4, 50)}})
		}),
		// A new experiment, whose unknown fields are null.
		experiment("exp_untitled7bf", skin, 89, 89, func(e *Experiment) {
			e.Status = new(client.Draft)
			e.FlowIDs = nil
		}),
	}
}

// experiment returns an experiment with the fields that every experiment has. created and updated count days from the
// first day of the project. fill sets further fields.
func experiment(id, flowID string, created, updated int, fill func(*Experiment)) Experiment {
	first := End().AddDate(0, 0, -Days)
	e := Experiment{ProjectID, client.Experiment{
		ID: id, ExperimentID: id, FlowID: flowID, FlowIDs: []string{flowID},
		CreatedAt: first.AddDate(0, 0, created).Add(9*time.Hour + 12*time.Minute + 31*time.Second),
		UpdatedAt: first.AddDate(0, 0, updated).Add(16*time.Hour + 5*time.Minute + 250*time.Millisecond),
	}}
	fill(&e)
	return e
}

// variant returns the settings of one variant of an experiment. weight is the percentage of visitors who get the
// variant.
func variant(name string, version, weight int) pairs {
	return pairs{{"name", name}, {"version_number", version}, {"weight", weight}}
}

// text returns the JSON of v as a string, for fields that contain JSON in a string.
func text(v any) *string {
	b, _ := plain(v) // never fails: it only contains strings, numbers and lists of them
	return new(string(b))
}
