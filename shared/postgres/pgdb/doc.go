// Package pgdb owns the access of a service to one Postgres database with one role. It has a connection pool with
// bounded waits, and decides what the database's faults mean for clients.
//
// A statement takes three steps, all in [Pool.Query]: wait for a connection, run the statement within its time-out,
// return the connection. The pool is pgx's own, and so is the cancelling of statements. When a statement's context
// ends, pgx closes the connection and asks the server to cancel the statement.
//
// The package knows no table, no standbys (package standbys) and no migrations (package migrate). Of
// Citus it knows only what package citus tells the pool ([Pool.SetDistributed]). It tells faults apart by SQLSTATE and type, never
// by their text.
package pgdb
