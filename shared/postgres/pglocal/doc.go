// Package pglocal runs a private Postgres server with the machine's own binaries, for local runs and for tests. The
// server belongs to this process and to one folder. It ends with its parent process, even if that is killed. The next
// start uses the data in the folder.
//
// Clients reach it without a password through a Unix socket in a folder that only the server's user may enter. TCP is
// optional. The server listens only on loopback, with a password (SCRAM) that is stored in the folder. So other users
// of the machine cannot read the data.
//
// It is not for production: it does no tuning, backup or upgrade.
package pglocal
