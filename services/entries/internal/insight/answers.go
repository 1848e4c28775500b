package insight

import (
	"encoding/json"
	"time"
)

// WhiteSpace has the characters with Unicode's property White_Space. A text that has only such characters does not
// count as an answer.
const WhiteSpace = "\t\n\v\f\r \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"

// MaxValues is how many values of a key an answer lists at most. MaxKeysWithValues is how many keys have values at most
// if a question is not about one key.
const (
	MaxValues         = 50
	MaxKeysWithValues = 100
)

// AnswersQuestion asks for the top-level keys of entry_data, or for the values of one key. By is ByNone. If Interval is
// not All, the question is about one key, whose values are also counted in each interval.
type AnswersQuestion struct {
	CountsQuestion
	Key    string    // "" asks for the keys
	Values int       // how many values of each of the first keys, at most MaxValues; 0: none; ignored with Key
	Now    time.Time // ends a period that has no end, for the comparison with the earlier period; zero: do not compare
}

// Answers is the answer to an AnswersQuestion: with Key, the distribution of its values, and otherwise Keys. Previous
// counts the entries of the earlier period. Previous and Intervals are nil if the question does not ask for them.
type Answers struct {
	Key        string      `json:"key,omitempty"`
	Entries    int         `json:"entries"`
	Unreadable int         `json:"unreadable"`
	Previous   *int        `json:"previous,omitempty"`
	Intervals  []Interval  `json:"intervals,omitzero"`
	Keys       []AnswerKey `json:"keys,omitzero"`
	*Distribution
}

// AnswerKey is one key of entry_data. Types counts the entries by the JSON type of their value. Distinct is "many" if
// nearly all values are different, so that the distribution has the latest values instead of the most frequent ones.
type AnswerKey struct {
	Key      string          `json:"key"`
	Entries  int             `json:"entries"`
	Types    json.RawMessage `json:"types"`
	Distinct string          `json:"distinct,omitempty"`
	*Distribution
}

// Distribution is how often the values of a key occur. Numbers is JSON of the store.
type Distribution struct {
	None     int             `json:"none"`
	Multiple int             `json:"multiple"`
	Others   int             `json:"others"`
	Values   []Value         `json:"values"`
	Numbers  json.RawMessage `json:"numbers"`
}

// Value is one value of a key. Entries is nil for one of the latest values. Previous counts the entries of the earlier
// period. ByInterval has a number of entries for each interval of the answer.
type Value struct {
	Value      json.RawMessage `json:"value"`
	Entries    *int            `json:"entries,omitempty"`
	Previous   *int            `json:"previous,omitempty"`
	ByInterval []int           `json:"by_interval,omitzero"`
}

// Interval counts the selected entries of one interval.
type Interval struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Entries int       `json:"entries"`
}
