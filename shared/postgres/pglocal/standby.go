package pglocal

import (
	"context"
	"fmt"
	"maps"
	"os"
	"strings"
)

// Standby starts a server in an empty folder that replicates another server, of, by streaming. Standby returns when the
// standby accepts connections. The standby has the data, roles and password of the other server. The standby also has
// the other server's settings, unless o has different ones. The other server must have a wal_level of replica or more
// and a max_wal_senders of at least 2.
func Standby(ctx context.Context, of *Server, o Options) (*Server, error) {
	settings := map[string]string{}
	maps.Copy(settings, of.options.Settings)
	maps.Copy(settings, o.Settings)
	o.Settings = settings
	return launch(ctx, o, func(s *Server) error { return s.replicate(ctx, of) })
}

// replicate creates the data folder as a copy of the data of another server, of. The error reports a folder that has
// data already.
func (s *Server) replicate(ctx context.Context, of *Server) error {
	f := s.folder
	if _, err := os.Stat(f.data()); err == nil {
		return fmt.Errorf("%s holds a database already", f.root)
	}
	source := fmt.Sprintf("host='%s' port=%s user=%s application_name=standby",
		strings.ReplaceAll(of.folder.socket, "'", `\'`), of.socketPort(), Superuser)
	return s.createData(ctx, of.password, "pg_basebackup", "--dbname="+source, "--wal-method=stream", "--checkpoint=fast", "--write-recovery-conf")
}
