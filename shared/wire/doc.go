// Package wire owns how the API writes and reads single values: text and times as JSON bytes, times in
// requests, and identifiers. It knows nothing of HTTP, of records or of databases.
package wire
