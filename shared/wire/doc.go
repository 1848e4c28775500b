// Package wire owns how the API writes and reads single values: text and times as JSON bytes, times in requests,
// identifiers. It also shortens text for messages, and turns zero values into null. It knows nothing of HTTP, of records or
// of databases.
package wire
