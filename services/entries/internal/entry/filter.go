package entry

import "iter"

// Operations is a bit set of the operations of the API that have filters.
type Operations byte

// The operations that have filters, with one bit each.
const (
	ListEntries   Operations = 1 << iota // the list of entries
	ListPageViews                        // the list of entries with their page views
	Insights                             // counts, overview, funnel and answers
	Counts                               // counts alone
)

// Kind is how a filter compares a field of an entry with the value of its parameter.
type Kind byte

// The kinds of comparison. Each kind says which entries pass the filter, and gives the Go type of the value.
const (
	Equal     Kind = iota // the field is this identifier (string)
	After                 // the field is later than this time (int64, in Unix microseconds)
	Before                // the field is earlier than this time (int64)
	Is                    // the field is true or false (bool)
	Number                // the field is this number (int64)
	Answers               // an answer in the field equals this JSON (string)
	AnswerKey             // the condition Answers is about this key alone (string)
	Contains              // each word of this text is in an answer in the field or in an id, in any letter case (string)
)

// Filter is a query parameter of the API that selects entries by one field.
type Filter struct {
	Parameter string
	Field     string // of an entry: a column in Postgres, or a value that the store derives from progress
	Kind      Kind
	Of        Operations // the operations that have the parameter
}

// filters is the table of all filters. The handlers read the parameters in the table, and the store turns each filter
// into an SQL condition. A cursor is valid only for the filters that were set when it was made.
var filters = []Filter{
	{"embeddable_id", "embeddable_id", Equal, ListEntries | ListPageViews | Insights},
	{"contact_id", "contact_id", Equal, ListEntries | ListPageViews | Counts},
	{"group_id", "group_id", Equal, ListEntries | ListPageViews | Counts},
	{"version", "version", Number, ListEntries | ListPageViews | Insights},
	{"completed", "completed", Is, ListEntries | ListPageViews | Insights},
	{"furthest_page", "furthest", Number, ListEntries | ListPageViews | Insights},
	{"answer", "entry_data", Answers, ListEntries | Insights},
	{"answer_key", "entry_data", AnswerKey, ListEntries | Insights},
	{"search", "entry_data", Contains, ListEntries | Counts},
	{"created_after", "created_at", After, ListEntries | Insights},
	{"created_before", "created_at", Before, ListEntries | Insights},
	{"updated_after", "updated_at", After, ListEntries | ListPageViews | Insights},
	{"updated_before", "updated_at", Before, ListEntries | ListPageViews | Insights},
}

// Filters returns the filters of operations, in the order of the table.
func Filters(operations Operations) iter.Seq[Filter] {
	return func(yield func(Filter) bool) {
		for _, f := range filters {
			if f.Of&operations != 0 && !yield(f) {
				return
			}
		}
	}
}

// Condition is a filter with the value that a request sets.
type Condition struct {
	Filter

	Value any // of the type that the Kind names: string, int64 or bool
}

// Selection selects the entries of a project that fulfil all conditions.
type Selection struct {
	ProjectID  string
	Conditions []Condition
}
