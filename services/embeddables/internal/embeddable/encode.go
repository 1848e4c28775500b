package embeddable

import (
	"strconv"

	"github.com/lectern-dev/lectern/shared/wire"
)

// Row is a record as it came from the database: borrowed bytes, valid until the next row.
type Row interface {
	Text(column int) []byte
	Micros(column int) int64                 // of a timestamptz, Unix microseconds
	AppendInt(dst []byte, column int) []byte // a JSON number
}

// Columns of a listed embeddable's row, in the order in which the store selects them.
const (
	ColumnID = iota
	ColumnTitle
	ColumnGroupID
)

// Columns of a listed version's row.
const (
	ColumnNumber = iota
	ColumnSavedAt
)

// Columns of a row that has a part of a definition: of a document's first parts, with the record.
const (
	ColumnContent = iota
	ColumnHash    // in hexadecimal

	ColumnDocumentTitle = iota
	ColumnDocumentGroupID

	ColumnDocumentSavedAt = iota - 2
)

// Append appends the row as an Embeddable of the API. project is the project's id as a JSON string.
func Append(dst []byte, project []byte, row Row) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = wire.AppendText(dst, row.Text(ColumnID))
	return append(appendTail(dst, project, row.Text(ColumnTitle), row.Text(ColumnGroupID)), '}')
}

// AppendHead appends the beginning of an embeddable's document, up to the text of its definition. id
// and project are JSON strings.
func AppendHead(dst []byte, project, id []byte, row Row) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = appendTail(dst, project, row.Text(ColumnDocumentTitle), row.Text(ColumnDocumentGroupID))
	return append(dst, `,"json_string_prod":"`...)
}

func appendTail(dst, project, title, group []byte) []byte {
	dst = append(dst, `,"title":`...)
	dst = wire.AppendText(dst, title)
	dst = append(dst, `,"group_id":`...)
	dst = wire.AppendText(dst, group)
	dst = append(dst, `,"project_id":`...)
	return append(dst, project...)
}

// AppendVersion appends the row as an EmbeddableVersion of the API. id is the embeddable's as a JSON
// string.
func AppendVersion(dst []byte, id []byte, row Row) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"version_number":`...)
	dst = row.AppendInt(dst, ColumnNumber)
	dst = append(dst, `,"saved_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnSavedAt))
	return append(dst, '}')
}

// AppendVersionHead appends the beginning of a version's document, up to the text of its definition. id
// is the embeddable's as a JSON string.
func AppendVersionHead(dst []byte, id []byte, number int64, row Row) []byte {
	dst = append(dst, `{"embeddable_id":`...)
	dst = append(dst, id...)
	dst = append(dst, `,"version_number":`...)
	dst = strconv.AppendInt(dst, number, 10)
	dst = append(dst, `,"saved_at":`...)
	dst = wire.AppendTime(dst, row.Micros(ColumnDocumentSavedAt))
	return append(dst, `,"json_string":"`...)
}

// AppendDocumentTail appends the end of a document.
func AppendDocumentTail(dst []byte) []byte { return append(dst, "\"}\n"...) }
