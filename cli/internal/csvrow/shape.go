package csvrow

// Shape is a resource's record: its fields in order.
type Shape struct {
	Resource string
	Fields   []Field
	// Rest names the field for the columns that no other field uses, as a string of one JSON object. Empty: there is no
	// such field, and unused columns are an error.
	Rest string
}

// Field is one field of a record.
type Field struct {
	Name string
	// Time fields are read in the format of Options.TimeFormat, if there is one.
	Time bool
	// Integer fields are written as JSON numbers, all others as strings.
	Integer bool
	// Nullable fields are null if the cell is empty or there is no source. In other fields, an empty cell rejects the row.
	Nullable bool
	// Default names the field whose value is used if nothing else defines this one, or if its cell is empty.
	Default string
}

// Entries is the shape of an entry.
func Entries() Shape {
	return Shape{
		Resource: "entries",
		Rest:     "entry_data",
		Fields: []Field{
			{Name: "entry_id"},
			{Name: "group_id"},
			{Name: "project_id"},
			{Name: "embeddable_id"},
			{Name: "contact_id"},
			{Name: "created_at", Time: true},
			{Name: "updated_at", Time: true, Default: "created_at"},
			{Name: "entry_data"},
		},
	}
}

// Events is the shape of an event.
func Events() Shape {
	return Shape{
		Resource: "events",
		Fields: []Field{
			{Name: "event_id", Nullable: true},
			{Name: "entry_id"},
			{Name: "contact_id"},
			{Name: "project_id"},
			{Name: "group_id"},
			{Name: "embeddable_id"},
			{Name: "embeddable_version_number", Integer: true, Nullable: true},
			{Name: "timestamp", Time: true},
			{Name: "page_id", Nullable: true},
			{Name: "page_key", Nullable: true},
			{Name: "page_index", Integer: true, Nullable: true},
			{Name: "max_page_id", Nullable: true},
			{Name: "max_page_key", Nullable: true},
			{Name: "max_page_index", Integer: true, Nullable: true},
			{Name: "total_pages", Integer: true, Nullable: true},
			{Name: "event_type"},
			{Name: "view_type", Nullable: true},
			{Name: "custom_event_name", Nullable: true},
			{Name: "custom_event_props", Nullable: true},
			{Name: "url", Nullable: true},
		},
	}
}
