// Package wire owns how the API writes and reads single values: text and times as JSON bytes, times in requests,
// identifiers. The package also shortens text for messages, and turns zero values into null. The package knows nothing
// of HTTP, of records or of databases.
package wire
