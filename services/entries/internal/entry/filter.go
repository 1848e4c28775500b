package entry

import "iter"

// Operations is a set of operations that have filters.
type Operations byte

// The operations.
const (
	ListEntries   Operations = 1 << iota // operation 1
	ListPageViews                        // operation 4
	Insights                             // counts, funnel and answers
)

// Kind is how a filter compares a field of an entry with the value of its parameter.
type Kind byte

// The kinds.
const (
	Equal  Kind = iota // the field is this identifier (string)
	After              // the field is later than this time (int64, in Unix microseconds)
	Before             // the field is earlier than this time (int64)
	Is                 // the field is true or false (bool)
)

// Filter is a parameter of the API that selects entries.
type Filter struct {
	Parameter string
	Field     string // of an entry, as Postgres and the API call it
	Kind      Kind
	Of        Operations // those that have the parameter
}

// filters is the table of all filters. The handlers read parameters by it, the check of a cursor covers those that are set, and
// the store turns them into conditions. Tests compare the descriptions of the API, the clients and the command line with it.
var filters = []Filter{
	{"embeddable_id", "embeddable_id", Equal, ListEntries | ListPageViews | Insights},
	{"contact_id", "contact_id", Equal, ListEntries | ListPageViews},
	{"group_id", "group_id", Equal, ListEntries | ListPageViews},
	{"completed", "completed", Is, ListEntries | ListPageViews},
	{"created_after", "created_at", After, ListEntries | Insights},
	{"created_before", "created_at", Before, ListEntries | Insights},
	{"updated_after", "updated_at", After, ListEntries | ListPageViews | Insights},
	{"updated_before", "updated_at", Before, ListEntries | ListPageViews | Insights},
}

// Filters returns the filters that an operation has.
func Filters(of Operations) iter.Seq[Filter] {
	return func(yield func(Filter) bool) {
		for _, f := range filters {
			if f.Of&of != 0 && !yield(f) {
				return
			}
		}
	}
}

// Condition is a filter with the value that a request sets.
type Condition struct {
	Filter

	Value any // its type is that of the Kind
}

// Selection selects the entries of a project that fulfil all conditions.
type Selection struct {
	ProjectID  string
	Conditions []Condition
}
