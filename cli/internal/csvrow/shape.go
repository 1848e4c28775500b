package csvrow

// Shape is a resource's record: its fields in order.
type Shape struct {
	Resource string
	Fields   []Field
	// Rest names the field that takes the columns that no other field takes, as one JSON object in a
	// string. Empty: there is none, and such columns are refused.
	Rest string
}

// Field is one field of a record.
type Field struct {
	Name string
	// Integer fields are written as JSON numbers, all others as strings.
	Integer bool
	// Nullable fields become null where the cell is empty, and may lack a source. In any other, an empty
	// cell rejects the row.
	Nullable bool
	// Default names the field that it is taken from when nothing else gives it.
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
			{Name: "created_at"},
			{Name: "updated_at", Default: "created_at"},
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
			{Name: "timestamp"},
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
